/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_jail_serve.c - Calls that work inside the jail: everything that serving
 * takes.
 *
 * Each test runs as an ordinary user and, where it may, as root, in a child that enters the jail
 * and is talked to by its parent. Libraries are used as the front uses them, so a call that a new
 * version of one makes shows up here.
 */
#include "base/fd.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <openssl/ssl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/timerfd.h>
#include <sys/un.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#include "../unit.h"
#include "jail_kit.h"
#include "store/store.h"

#define MIB (1024u * 1024u)

/* ---- connections ----------------------------------------------------------------------------- */

struct listeners {
	int tcp, local;
	struct sockaddr_in address;
	struct sockaddr_un path; /* abstract, so that nothing is left behind */
	socklen_t path_len;
};

static struct listeners make_listeners(void)
{
	struct listeners l = { .address = { .sin_family = AF_INET },
			       .path = { .sun_family = AF_UNIX } };
	socklen_t len = sizeof(l.address);

	l.address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	l.path_len = (socklen_t)offsetof(struct sockaddr_un, sun_path) + 1 +
		     (socklen_t)snprintf(l.path.sun_path + 1, sizeof(l.path.sun_path) - 1,
					 "caisson-test-jail-%d", (int)getpid());
	l.tcp = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	l.local = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	CHILD_CHECK(bind(l.tcp, (struct sockaddr *)&l.address, len) == 0);
	CHILD_CHECK(getsockname(l.tcp, (struct sockaddr *)&l.address, &len) == 0);
	CHILD_CHECK(bind(l.local, (struct sockaddr *)&l.path, l.path_len) == 0);
	CHILD_CHECK(listen(l.tcp, 8) == 0 && listen(l.local, 8) == 0);
	return l;
}

/* One connection from one of the listeners: its options, its peer, its bytes back and its end. */
static void serve_one(int epoll, const struct listeners *l)
{
	struct epoll_event ev = { 0 };
	struct sockaddr_storage peer;
	struct ucred cred;
	socklen_t len = sizeof(peer), cred_len = sizeof(cred);
	char text[8];
	int one = 1, n = 0;

	CHILD_CHECK(epoll_wait(epoll, &ev, 1, 5000) == 1);
	int c = accept4(ev.data.fd, (struct sockaddr *)&peer, &len, SOCK_NONBLOCK | SOCK_CLOEXEC);

	CHILD_CHECK(c >= 0);
	len = sizeof(peer);
	CHILD_CHECK(getpeername(c, (struct sockaddr *)&peer, &len) == 0);
	if (ev.data.fd == l->tcp)
		CHILD_CHECK(setsockopt(c, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one)) == 0);
	else
		CHILD_CHECK(getsockopt(c, SOL_SOCKET, SO_PEERCRED, &cred, &cred_len) == 0 &&
			    cred.pid == getppid());
	CHILD_CHECK(setsockopt(c, SOL_SOCKET, SO_KEEPALIVE, &one, sizeof(one)) == 0);
	len = sizeof(n);
	CHILD_CHECK(getsockopt(c, SOL_SOCKET, SO_ERROR, &n, &len) == 0 && n == 0);
	ev = (struct epoll_event){ .events = EPOLLIN, .data.fd = c };
	CHILD_CHECK(epoll_ctl(epoll, EPOLL_CTL_ADD, c, &ev) == 0);
	CHILD_CHECK(epoll_wait(epoll, &ev, 1, 5000) == 1 && ev.data.fd == c);
	CHILD_CHECK(ioctl(c, FIONREAD, &n) == 0 && n == 4);
	CHILD_CHECK(recv(c, text, sizeof(text), 0) == 4);
	CHILD_CHECK(send(c, text, 4, MSG_NOSIGNAL) == 4);
	CHILD_CHECK(shutdown(c, SHUT_WR) == 0 && close(c) == 0);
}

static void server(void *arg)
{
	const struct listeners *l = arg;
	int epoll = epoll_create1(EPOLL_CLOEXEC);
	struct epoll_event ev = { .events = EPOLLIN, .data.fd = l->tcp };

	(void)enter_jail();
	CHILD_CHECK(epoll_ctl(epoll, EPOLL_CTL_ADD, l->tcp, &ev) == 0);
	ev.data.fd = l->local;
	CHILD_CHECK(epoll_ctl(epoll, EPOLL_CTL_ADD, l->local, &ev) == 0);
	serve_one(epoll, l);
	serve_one(epoll, l);
}

static void ask(int family, const void *address, socklen_t len)
{
	char text[8];
	_fd_ int c = socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0);

	CHILD_CHECK(connect(c, address, len) == 0);
	CHILD_CHECK(send(c, "ping", 4, MSG_NOSIGNAL) == 4);
	CHILD_CHECK(recv(c, text, sizeof(text), MSG_WAITALL) == 4);
	CHILD_CHECK(memcmp(text, "ping", 4) == 0);
}

static void connections(void)
{
	struct listeners l = make_listeners();
	pid_t pid = child_start(server, &l);

	ask(AF_INET, &l.address, sizeof(l.address));
	ask(AF_UNIX, &l.path, l.path_len);
	CHILD_CHECK(child_wait(pid) == 0);
}

/* ---- TLS ------------------------------------------------------------------------------------- */

/* A key, and a certificate that it signed itself. */
static SSL_CTX *make_server(void)
{
	SSL_CTX *ctx = SSL_CTX_new(TLS_server_method());
	EVP_PKEY *key = EVP_EC_gen("P-256");
	X509 *cert = X509_new();
	X509_NAME *name = X509_get_subject_name(cert);

	CHILD_CHECK(ctx && key && cert);
	CHILD_CHECK(ASN1_INTEGER_set(X509_get_serialNumber(cert), 1) == 1);
	CHILD_CHECK(X509_gmtime_adj(X509_getm_notBefore(cert), -60) != NULL);
	CHILD_CHECK(X509_gmtime_adj(X509_getm_notAfter(cert), 3600) != NULL);
	CHILD_CHECK(X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_ASC,
					       (const unsigned char *)"localhost", -1, -1, 0) == 1);
	CHILD_CHECK(X509_set_issuer_name(cert, name) == 1 && X509_set_pubkey(cert, key) == 1);
	CHILD_CHECK(X509_sign(cert, key, EVP_sha256()) > 0);
	CHILD_CHECK(SSL_CTX_use_certificate(ctx, cert) == 1);
	CHILD_CHECK(SSL_CTX_use_PrivateKey(ctx, key) == 1);
	return ctx;
}

/* Both ends over memory, as the front does it: handshake, some bytes each way, orderly end. */
static void talk_tls(SSL_CTX *server_ctx, int version)
{
	SSL_CTX *client_ctx = SSL_CTX_new(TLS_client_method());
	SSL *s = SSL_new(server_ctx), *c = SSL_new(client_ctx);
	BIO *sb, *cb;
	char text[16];
	int done = 0;

	CHILD_CHECK(client_ctx && s && c && BIO_new_bio_pair(&sb, 0, &cb, 0) == 1);
	CHILD_CHECK(SSL_set_max_proto_version(c, version) == 1);
	SSL_set_bio(s, sb, sb);
	SSL_set_bio(c, cb, cb);
	SSL_set_accept_state(s);
	SSL_set_connect_state(c);
	for (int i = 0; i < 20 && done != 2; i++)
		done = (SSL_do_handshake(c) == 1) + (SSL_do_handshake(s) == 1);
	CHILD_CHECK(done == 2 && SSL_version(s) == version);
	CHILD_CHECK(SSL_write(c, "GET /", 5) == 5 && SSL_read(s, text, sizeof(text)) == 5);
	CHILD_CHECK(SSL_write(s, "200", 3) == 3 && SSL_read(c, text, sizeof(text)) == 3);
	CHILD_CHECK(SSL_shutdown(s) == 0 && SSL_shutdown(c) >= 0);
	SSL_free(s);
	SSL_free(c);
	SSL_CTX_free(client_ctx);
}

static void tls(void)
{
	SSL_CTX *ctx = make_server();

	(void)enter_jail();
	talk_tls(ctx, TLS1_3_VERSION);
	talk_tls(ctx, TLS1_2_VERSION);
	SSL_CTX_free(ctx);
}

/* ---- the warden and the cells ---------------------------------------------------------------- */

static void sender(void *arg)
{
	int sock = *(int *)arg, fds[2], pipe_fds[2];
	char text[8];
	size_t n = 1;

	(void)enter_jail();
	fds[0] = fd_memfd("arguments", "print(1)", 8);
	CHILD_CHECK(fds[0] >= 0 && pipe2(pipe_fds, O_CLOEXEC | O_NONBLOCK) == 0);
	CHILD_CHECK(fcntl(pipe_fds[0], F_SETPIPE_SZ, 65536) == 65536);
	fds[1] = fcntl(pipe_fds[1], F_DUPFD_CLOEXEC, 100);
	CHILD_CHECK(fds[1] >= 100 && fd_send(sock, "run", 3, fds, 2) == 0);
	fd_close(fds[1]);
	fd_close(pipe_fds[1]);

	/* Bytes of the other side, its end, and a descriptor from it. */
	struct pollfd p = { .fd = pipe_fds[0], .events = POLLIN };

	CHILD_CHECK(poll(&p, 1, 60000) == 1 && read(pipe_fds[0], text, sizeof(text)) == 1);
	CHILD_CHECK(fd_recv(sock, text, sizeof(text), fds, &n) == 2 && n == 1);
	CHILD_CHECK(pread(fds[0], text, sizeof(text), 0) == 5);

	/* Mapped like the evidence of a receipt. */
	struct stat st;

	CHILD_CHECK(fstat(fds[0], &st) == 0 && st.st_size == 5);
	char *at = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fds[0], 0);

	CHILD_CHECK(at != MAP_FAILED && memcmp(at, "hello", 5) == 0 && munmap(at, 5) == 0);

	/* A memory file made step by step. */
	_fd_ int fd = memfd_create("blob", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	CHILD_CHECK(fd >= 0 && ftruncate(fd, 100) == 0 && pwrite(fd, "x", 1, 99) == 1);
	CHILD_CHECK(lseek(fd, 0, SEEK_END) == 100 && fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE) == 0);
	CHILD_CHECK(fcntl(fd, F_GET_SEALS) == F_SEAL_WRITE && write(fd, "x", 1) < 0);
}

static void descriptors(void)
{
	int pair[2], fds[2], reply;
	size_t n = 2;
	char text[16];

	CHILD_CHECK(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) == 0);
	pid_t pid = child_start(sender, &pair[1]);

	CHILD_CHECK(fd_recv(pair[0], text, sizeof(text), fds, &n) == 3 && n == 2);
	CHILD_CHECK(pread(fds[0], text, sizeof(text), 0) == 8 && memcmp(text, "print(1)", 8) == 0);
	CHILD_CHECK(write(fds[1], "1", 1) == 1);
	reply = fd_memfd("reply", "hello", 5);
	CHILD_CHECK(fd_send(pair[0], "ok", 2, &reply, 1) == 0);
	CHILD_CHECK(child_wait(pid) == 0);
}

static void short_life(void *arg)
{
	(void)arg;
	_exit(7);
}

/* The warden is a child that was started before, and is waited for at the end. */
static void reaping(void)
{
	pid_t first = child_start(short_life, NULL), second = child_start(short_life, NULL);
	siginfo_t info;

	(void)enter_jail();
	CHILD_CHECK(waitid(P_PID, (id_t)first, &info, WEXITED) == 0 && info.si_status == 7);
	CHILD_CHECK(WEXITSTATUS(child_wait(second)) == 7);
}

/* ---- time, signals, memory, libraries -------------------------------------------------------- */

static void waiter(void *arg)
{
	const struct itimerspec soon = { .it_value.tv_nsec = 1000000 };
	const struct timespec moment = { .tv_nsec = 1000 };
	struct signalfd_siginfo info;
	uint64_t ticks;
	sigset_t mask;

	(void)enter_jail();
	_fd_ int timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC);

	CHILD_CHECK(timer >= 0 && timerfd_settime(timer, 0, &soon, NULL) == 0);
	CHILD_CHECK(read(timer, &ticks, sizeof(ticks)) == (ssize_t)sizeof(ticks) && ticks >= 1);
	CHILD_CHECK(clock_nanosleep(CLOCK_MONOTONIC, 0, &moment, NULL) == 0);
	CHILD_CHECK(nanosleep(&moment, NULL) == 0);

	(void)sigemptyset(&mask);
	(void)sigaddset(&mask, SIGTERM);
	CHILD_CHECK(sigprocmask(SIG_BLOCK, &mask, NULL) == 0);
	CHILD_CHECK(signal(SIGPIPE, SIG_IGN) != SIG_ERR);
	_fd_ int signals = signalfd(-1, &mask, SFD_CLOEXEC);

	CHILD_CHECK(signals >= 0 && write(*(int *)arg, "x", 1) == 1);
	CHILD_CHECK(read(signals, &info, sizeof(info)) == (ssize_t)sizeof(info));
	CHILD_CHECK(info.ssi_signo == SIGTERM);
}

static void waiting(void)
{
	int fds[2];
	char ch;

	CHILD_CHECK(pipe2(fds, O_CLOEXEC) == 0);
	pid_t pid = child_start(waiter, &fds[1]);

	CHILD_CHECK(read(fds[0], &ch, 1) == 1);
	/* Root may; an ordinary user's signal is one of the same user. */
	CHILD_CHECK(kill(pid, SIGTERM) == 0);
	CHILD_CHECK(child_wait(pid) == 0);
}

static void memory(void)
{
	(void)enter_jail();
	for (size_t size = 64; size <= 64u * MIB; size *= 8) {
		char *p = malloc(size);

		CHILD_CHECK(p != NULL);
		memset(p, 1, size);
		p = realloc(p, 2 * size); /* large ones by mremap */
		CHILD_CHECK(p != NULL && p[size - 1] == 1);
		free(p);
	}
	char *at = mmap(NULL, MIB, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	CHILD_CHECK(at != MAP_FAILED && mprotect(at, 4096, PROT_NONE) == 0);
	CHILD_CHECK(madvise(at, MIB, MADV_DONTNEED) == 0 && munmap(at, MIB) == 0);
}

static int by_value(const void *a, const void *b)
{
	return *(const int *)a - *(const int *)b;
}

static void libraries(void)
{
	static int numbers[100000]; /* enough for qsort to ask how much memory there is */
	char text[64];
	time_t now = time(NULL);
	struct tm tm;
	struct utsname uts;
	struct rusage usage;
	_fd_ int statm = open("/proc/self/statm", O_RDONLY | O_CLOEXEC);
	DIR *fds = opendir("/proc/self/fd");
	int n = 0;

	(void)enter_jail();
	for (size_t i = 0; i < ARRAY_SIZE(numbers); i++)
		numbers[i] = (int)(i * 7919 % 10007);
	qsort(numbers, ARRAY_SIZE(numbers), sizeof(numbers[0]), by_value);
	CHILD_CHECK(numbers[0] == 0);

	json_t *json = json_loads("{\"code\":\"print(1)\",\"timeout\":1.5}", 0, NULL);
	char *dump = json_dumps(json, JSON_COMPACT | JSON_SORT_KEYS);

	CHILD_CHECK(dump && strcmp(dump, "{\"code\":\"print(1)\",\"timeout\":1.5}") == 0);
	free(dump);
	json_decref(json);
	CHILD_CHECK(gmtime_r(&now, &tm) && localtime_r(&now, &tm));
	CHILD_CHECK(strftime(text, sizeof(text), "%FT%TZ", &tm) == 20);
	CHILD_CHECK(fprintf(stdout, "# %s %.3f %s\n", text, 1.5, strerror(EACCES)) > 0);
	CHILD_CHECK(fflush(stdout) == 0);
	CHILD_CHECK(uname(&uts) == 0 && getrusage(RUSAGE_SELF, &usage) == 0);

	/* For metrics: through descriptors that were opened before. */
	CHILD_CHECK(pread(statm, text, sizeof(text), 0) > 0);
	rewinddir(fds);
	while (readdir(fds))
		n++;
	CHILD_CHECK(n >= 2 + 5); /* ".", "..", three standard ones and these two */
	CHILD_CHECK(closedir(fds) == 0);
}

/* ---- files of its own ------------------------------------------------------------------------ */

static int count_one(const struct store_sandbox *b, void *arg)
{
	(void)b;
	++*(int *)arg;
	return 0;
}

/* SQLite in the jail: from nothing, at work, through a checkpoint, and closed. */
static void store(void)
{
	char top[] = "/tmp/caisson-test-jail-XXXXXX", id[16];
	const struct store_sandbox box = { .id = id, .owner = "o", .name = id, .spec = "{}" };
	struct store_files f;
	struct store *s;
	struct err e = { 0 };
	int n = 0;

	CHILD_CHECK(mkdtemp(top) != NULL);
	_fd_ int dir = open(top, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	CHILD_CHECK(store_files_open(dir, &f, &e) == 0);
	CHILD_CHECK(unlinkat(dir, STORE_FILE, 0) == 0 && unlinkat(dir, STORE_FILE "-wal", 0) == 0);
	CHILD_CHECK(rmdir(top) == 0); /* the names are no longer needed */
	(void)enter_jail();
	CHILD_CHECK(store_check(&f, &e) == 0);
	CHILD_CHECK(store_open(&f, &s, &e) == 0);
	for (int i = 0; i < 600; i++) {
		(void)snprintf(id, sizeof(id), "%d", i);
		CHILD_CHECK(store_sandbox_put(s, &box, &e) == 0);
	}
	CHILD_CHECK(store_sandbox_each(s, count_one, &n, &e) == 0 && n == 600);
	CHILD_CHECK(store_mark_lost(s, "x", NULL, 0, &e) == 600 && store_forget_old(s, 0, &e) == 0);
	store_close(s);
}

/* The ledger's full file gets another name, and a new one takes its place. */
static void ledger(void)
{
	char top[] = "/tmp/caisson-test-jail-XXXXXX";
	uid_t uid;
	gid_t gid;

	CHILD_CHECK(mkdtemp(top) && jail_identity(&uid, &gid, NULL) == 0);
	_fd_ int dir = open(top, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	_fd_ int old = openat(dir, "current", JAIL_LEDGER_FLAGS, 0600);

	CHILD_CHECK(dir >= 0 && old >= 0 && fchown(dir, uid, gid) == 0);
	pid_t pid = fork();

	if (pid == 0) {
		const struct jail_report r = enter_jail_with(dir);

		CHILD_CHECK(write(old, "x", 1) == 1 && fdatasync(old) == 0);
		int moved = renameat2(dir, "current", dir, "old", RENAME_NOREPLACE);
		int made = openat(dir, "current", JAIL_LEDGER_FLAGS, 0600);

		if (r.landlock || !r.seccomp) {
			CHILD_CHECK(moved == 0 && made >= 0 && write(made, "yy", 2) == 2);
			CHILD_CHECK(ftruncate(made, 1) == 0 && fsync(made) == 0);
			CHILD_CHECK(fsync(dir) == 0);
		} else {
			CHILD_CHECK(moved < 0 && made < 0);
		}
		_exit(0);
	}
	CHILD_CHECK(child_wait(pid) == 0);
	CHILD_CHECK(unlinkat(dir, "current", 0) == 0);
	(void)unlinkat(dir, "old", 0);
	CHILD_CHECK(rmdir(top) == 0);
}

static void aborting(void *arg)
{
	(void)arg;
	(void)enter_jail();
	abort();
}

static void abort_is_seen(void)
{
	int status = child_wait(child_start(aborting, NULL));

	CHILD_CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
}

/* ---------------------------------------------------------------------------------------------- */

struct variant {
	void (*fn)(void);
	int nobody;
};

static void run_variant(void *arg)
{
	const struct variant *v = arg;

	if (v->nobody)
		child_become_nobody();
	v->fn();
}

#define BOTH(name)                                                                                 \
	TEST(name)                                                                                 \
	{                                                                                          \
		struct variant v = { name, 1 };                                                    \
                                                                                                   \
		child_run(run_variant, &v);                                                        \
		v.nobody = 0;                                                                      \
		if (geteuid() == 0)                                                                \
			child_run(run_variant, &v);                                                \
		else                                                                               \
			(void)printf("# not tried as root\n");                                     \
	}

BOTH(connections)
BOTH(tls)
BOTH(descriptors)
BOTH(reaping)
BOTH(waiting)
BOTH(memory)
BOTH(libraries)
BOTH(store)
BOTH(ledger)
BOTH(abort_is_seen)
