#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# s3-server.sh - Bring a third-party S3 server into a directory, for the tests of buckets.
#
# minio: built from its Go module, as the module proxy has it; the first time that takes minutes, and about 2 GB below
# DIR/go until it is done. npm: s3rver from the npm registry, which is small, and does not check signatures. A server that
# is there already is not brought again. If it is not available, the reason is printed, and the exit code is 1.
#
# usage: s3-server.sh DIR minio|npm
set -eu

MINIO=github.com/minio/minio@v0.0.0-20260212201848-7aac2a2c5b7c
S3RVER=s3rver@3.7.1

dir=${1:?usage: s3-server.sh DIR minio|npm}
mkdir -p "$dir"
dir=$(cd "$dir" && pwd)

minio() {
	[ ! -x "$dir/minio" ] || return 0
	command -v go >/dev/null || { echo "s3-server: MinIO needs go, which is not installed" >&2; return 1; }
	echo "s3-server: building MinIO; this takes minutes"
	GOPATH=$dir/go GOBIN=$dir/bin GOFLAGS=-modcacherw nice go install -ldflags '-s -w' "$MINIO" >"$dir/minio.log" 2>&1 || {
		echo "s3-server: MinIO could not be built: $(tail -n 1 "$dir/minio.log")" >&2
		return 1
	}
	mv "$dir/bin/minio" "$dir/minio"
	rm -rf "${dir:?}/go" "${dir:?}/bin"
}

npm_server() {
	[ ! -e "$dir/node_modules/s3rver" ] || return 0
	command -v npm >/dev/null || { echo "s3-server: s3rver needs npm, which is not installed" >&2; return 1; }
	npm install --prefix "$dir" --no-audit --no-fund --no-save --ignore-scripts "$S3RVER" >"$dir/npm.log" 2>&1 || {
		echo "s3-server: s3rver could not be installed: $(tail -n 1 "$dir/npm.log")" >&2
		return 1
	}
}

case "${2:-}" in
minio) minio ;;
npm) npm_server ;;
*)
	echo "usage: s3-server.sh DIR minio|npm" >&2
	exit 2
	;;
esac
