/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stage_net.c - The cell's network: lo, and the addresses behind which the gate listens.
 *
 * Every cell has them, with egress or without: a cell of the pool does not know yet which sandbox
 * will take it, and an address on which no socket listens refuses at once. There is no other device
 * and no route to one, so these addresses lead to nothing else. 198.18.0.1/15 on a loopback device
 * makes the whole range local; IPv6 needs a route for that, and is left out where the Linux kernel
 * has none.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include "base/fd.h"
#include "cell/plan.h"
#include "cell/stage.h"
#include "wire/gate.h"

#define LO_INDEX 1 /* of every network namespace */
#define V6_LEN 16

static const uint8_t net6[V6_LEN] = GATE_NET6;

/* One netlink request: a header, one fixed struct, attributes. */
struct request {
	struct nlmsghdr head;
	union {
		struct ifaddrmsg addr;
		struct rtmsg route;
		char room[128];
	} u;
};

static void begin(struct request *q, uint16_t type, size_t fixed)
{
	memset(q, 0, sizeof(*q));
	q->head.nlmsg_type = type;
	q->head.nlmsg_flags = NLM_F_REQUEST | NLM_F_CREATE | NLM_F_EXCL;
	q->head.nlmsg_len = (uint32_t)NLMSG_LENGTH(fixed);
}

static void attribute(struct request *q, uint16_t type, const void *data, uint16_t len)
{
	struct rtattr *a = (struct rtattr *)((char *)q + NLMSG_ALIGN(q->head.nlmsg_len));

	a->rta_type = type;
	a->rta_len = (uint16_t)RTA_LENGTH(len);
	memcpy(RTA_DATA(a), data, len);
	q->head.nlmsg_len = (uint32_t)(NLMSG_ALIGN(q->head.nlmsg_len) + RTA_ALIGN(a->rta_len));
}

/* The Linux kernel acts during send(2); without NLM_F_ACK it answers failures only. 0 or -errno. */
static int ask(int s, const struct request *q)
{
	struct {
		struct nlmsghdr head;
		struct nlmsgerr error;
		char rest[sizeof(struct request)];
	} answer = { 0 };

	if (send(s, q, q->head.nlmsg_len, 0) < 0)
		return -errno;
	ssize_t n = recv(s, &answer, sizeof(answer), MSG_DONTWAIT);

	if (n < 0)
		return errno == EAGAIN ? 0 : -errno;
	return answer.head.nlmsg_type == NLMSG_ERROR ? answer.error.error : -EPROTO;
}

static int add_address(int s, uint8_t family, const void *address, uint16_t len, uint8_t bits)
{
	struct request q;

	begin(&q, RTM_NEWADDR, sizeof(struct ifaddrmsg));
	q.u.addr = (struct ifaddrmsg){
		.ifa_family = family,
		.ifa_prefixlen = bits,
		.ifa_flags = family == AF_INET6 ? IFA_F_NODAD : 0,
		.ifa_index = LO_INDEX,
	};
	attribute(&q, IFA_LOCAL, address, len);
	attribute(&q, IFA_ADDRESS, address, len);
	return ask(s, &q);
}

static int add_local_route6(int s)
{
	const uint32_t lo = LO_INDEX;
	struct request q;

	begin(&q, RTM_NEWROUTE, sizeof(struct rtmsg));
	q.u.route = (struct rtmsg){
		.rtm_family = AF_INET6,
		.rtm_dst_len = GATE_NET6_BITS,
		.rtm_table = RT_TABLE_LOCAL,
		.rtm_protocol = RTPROT_BOOT,
		.rtm_scope = RT_SCOPE_HOST,
		.rtm_type = RTN_LOCAL,
	};
	attribute(&q, RTA_DST, net6, V6_LEN);
	attribute(&q, RTA_OIF, &lo, sizeof(lo));
	return ask(s, &q);
}

static int add_gate_addresses(void)
{
	_fd_ int s = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);
	const uint32_t self4 = htonl(GATE_SELF4);
	uint8_t self6[V6_LEN];

	if (s < 0)
		return -errno;
	memcpy(self6, net6, sizeof(self6));
	self6[V6_LEN - 1] = 1;
	int r = add_address(s, AF_INET, &self4, sizeof(self4), GATE_NET4_BITS);

	if (r == 0 && add_address(s, AF_INET6, self6, sizeof(self6), V6_LEN * 8) == 0)
		(void)add_local_route6(s);
	return r;
}

/* Acts on the writer's own network namespace. A read-only /proc is left as it is. */
static int put(int proc, const char *path, const char *value)
{
	int r = fd_write_file(proc, path, value);

	return r == -EROFS || r == -EACCES || r == -ENOENT ? 0 : r;
}

/*
 * Ports below 1024 are free for every user here: pid 1 listens on 443 for the gate without a
 * capability, and so may a service; without this setting egress to such ports is refused. And there
 * is no congestion on a loopback device: a congestion control of the host that paces its output, as
 * bbr does with a timer for every piece, would only cost time between the cell and the gate.
 */
void stage_net_settings(const struct plan *p, int proc)
{
	stage_check(p, put(proc, "sys/net/ipv4/ip_unprivileged_port_start", "0"), STAGE_LOOPBACK,
		    2);
	(void)put(proc, "sys/net/ipv4/tcp_congestion_control", "reno");
}

void stage_net(const struct plan *p)
{
	struct ifreq req = { .ifr_flags = IFF_UP | IFF_RUNNING };
	_fd_ int s = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	memcpy(req.ifr_name, "lo", 3);
	if (s < 0 || ioctl(s, SIOCSIFFLAGS, &req) < 0)
		stage_fail(p, STAGE_LOOPBACK, 0);
	stage_check(p, add_gate_addresses(), STAGE_LOOPBACK, 1);
}
