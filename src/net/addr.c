/* SPDX-License-Identifier: Apache-2.0 */
/* addr.c - Socket addresses from and to text. See addr.h and conn.h. */
#include "net/addr.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>

#include "base/err.h"
#include "base/num.h"
#include "net/conn.h"

/*
 * Split "host:port" or "[host]:port"; *ret_port is where the port begins, NULL when there is none.
 */
static int split(const char *text, char *host, size_t size, bool *ret_v6, const char **ret_port)
{
	const char *end = strrchr(text, ':');
	size_t len = end ? (size_t)(end - text) : strlen(text);

	*ret_port = end ? end + 1 : NULL;
	*ret_v6 = len > 0 && text[0] == '[';
	if (*ret_v6) {
		if (len < 2 || text[len - 1] != ']')
			return -EINVAL;
		text++;
		len -= 2;
	}
	if (len >= size)
		return -EINVAL;
	memcpy(host, text, len);
	host[len] = '\0';
	return 0;
}

/* A mistyped address as errors quote it: printable and short. */
static const char *quoted(const char *text, char *out, size_t size)
{
	size_t n = 0;

	for (; *text && n + 1 < size; text++)
		out[n++] = *text > 0x20 && *text < 0x7f ? *text : '?';
	out[n] = '\0';
	return out;
}

int addr_parse(const char *text, struct sockaddr_storage *ret, struct err *e)
{
	struct sockaddr_in v4 = { .sin_family = AF_INET };
	struct sockaddr_in6 v6 = { .sin6_family = AF_INET6 };
	char host[INET6_ADDRSTRLEN], shown[80];
	const char *port_text;
	uint64_t port;
	bool is_v6;
	int r = split(text, host, sizeof(host), &is_v6, &port_text);

	quoted(text, shown, sizeof(shown));
	if (r == 0 && !is_v6 && host[0] == '\0')
		return err_say(e, -EINVAL,
			       "'%s' names no address; 127.0.0.1%s is this machine only, "
			       "0.0.0.0%s every interface",
			       shown, shown, shown);
	if (r < 0 || inet_pton(is_v6 ? AF_INET6 : AF_INET, host,
			       is_v6 ? (void *)&v6.sin6_addr : (void *)&v4.sin_addr) != 1)
		return err_say(e, -EINVAL,
			       "'%s' is not a numeric address with a port; write it as "
			       "127.0.0.1:8001 or [::1]:8001",
			       shown);
	if (!port_text || num_parse_u64(port_text, 0, UINT16_MAX, &port, NULL) < 0)
		return err_say(e, -EINVAL, "'%s' has no port between 0 and 65535 after its address",
			       shown);
	v4.sin_port = v6.sin6_port = htons((uint16_t)port);
	memset(ret, 0, sizeof(*ret));
	if (is_v6)
		memcpy(ret, &v6, sizeof(v6));
	else
		memcpy(ret, &v4, sizeof(v4));
	return is_v6 ? (int)sizeof(v6) : (int)sizeof(v4);
}

static bool v4_is_loopback(const struct in_addr *a)
{
	return ntohl(a->s_addr) >> 24 == IN_LOOPBACKNET;
}

void addr_peer(const struct sockaddr_storage *from, struct peer *ret)
{
	struct sockaddr_in6 v6;
	struct sockaddr_in v4;
	bool is_v4 = from->ss_family == AF_INET;
	unsigned int port;

	memcpy(&v4, from, sizeof(v4));
	memcpy(&v6, from, sizeof(v6));
	if (from->ss_family == AF_INET6 && IN6_IS_ADDR_V4MAPPED(&v6.sin6_addr)) {
		/* A socket for both families shows the client that one for IPv4 would show. */
		memcpy(&v4.sin_addr, &v6.sin6_addr.s6_addr[12], sizeof(v4.sin_addr));
		v4.sin_port = v6.sin6_port;
		is_v4 = true;
	}
	if (is_v4) {
		port = ntohs(v4.sin_port);
		(void)inet_ntop(AF_INET, &v4.sin_addr, ret->host, sizeof(ret->host));
		ret->is_loopback = v4_is_loopback(&v4.sin_addr);
		memcpy(ret->net, ret->host, sizeof(ret->net));
	} else {
		port = ntohs(v6.sin6_port);
		(void)inet_ntop(AF_INET6, &v6.sin6_addr, ret->host, sizeof(ret->host));
		ret->is_loopback = IN6_IS_ADDR_LOOPBACK(&v6.sin6_addr);
		/* One customer has all addresses of its first 64 bits. */
		memset(&v6.sin6_addr.s6_addr[8], 0, 8);
		(void)inet_ntop(AF_INET6, &v6.sin6_addr, ret->net, sizeof(ret->net));
	}
	(void)snprintf(ret->text, sizeof(ret->text), is_v4 ? "%s:%u" : "[%s]:%u", ret->host, port);
}

int addr_is_loopback(const char *addr, struct err *e)
{
	struct sockaddr_storage to;
	struct peer p;
	int r = addr_parse(addr, &to, e);

	if (r < 0)
		return r;
	addr_peer(&to, &p);
	return p.is_loopback;
}
