/* SPDX-License-Identifier: Apache-2.0 */
/* challenge.h - What a registry wants to see first: the header WWW-Authenticate. Pure. */
#ifndef CAISSON_IMAGE_CHALLENGE_H
#define CAISSON_IMAGE_CHALLENGE_H

enum challenge_scheme { CHALLENGE_NONE, CHALLENGE_BASIC, CHALLENGE_BEARER };

struct challenge {
	enum challenge_scheme scheme;
	/* Of Bearer: where a token is to be had, and for what. Printable; "" when it was not said.
	 */
	char realm[1024], service[256], scope[512];
};

/*
 * challenge_parse() - Take one header's value in; several add up, and Bearer is preferred. What is
 * too long or not understood counts as not said.
 */
void challenge_parse(struct challenge *c, const char *value);

#endif
