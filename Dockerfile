# SPDX-License-Identifier: Apache-2.0
# The daemon in a container (docs/container.md). No registry is asked: first `make container` makes the two archives, of Debian's
# packages and of this tree; then
#   docker build -t sandbox:latest .
FROM scratch
ADD build/container/debian.tar /
ADD build/container/caisson.tar /

# The address is inside the container: --publish decides who reaches it. `sandbox` is the name by which other containers of
# the same network call it. `docker stop` waits for 10 seconds, so executions have less than that to end.
ENV PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin \
    LANG=C.UTF-8 \
    container=oci \
    CAISSON_STATE=/var/lib/caisson \
    CAISSON_LISTEN=0.0.0.0:8001 \
    CAISSON_ALLOW_HOST=sandbox \
    CAISSON_DRAIN_TIMEOUT=5s
VOLUME /var/lib/caisson
EXPOSE 8001/tcp
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=30s --timeout=10s --start-period=60s \
    CMD ["curl", "--fail", "--silent", "--show-error", "--output", "/dev/null", "--unix-socket", "/var/lib/caisson/caisson.sock", "http://localhost/health"]
ENTRYPOINT ["caisson"]
# --no-token: everybody who reaches the address may run code. With tokens: `serve --token-file FILE`.
CMD ["serve", "--no-token"]
