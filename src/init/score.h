/* SPDX-License-Identifier: Apache-2.0 */
/*
 * score.h - Which process of the cell the Linux kernel ends first when memory runs out.
 */
#ifndef CAISSON_INIT_SCORE_H
#define CAISSON_INIT_SCORE_H

/* score_begin() - Take INIT_SCORE_FD, if it is there; before anything else is opened. */
void score_begin(void);

/* score_child() - For the next fork: the child has @score (INIT_SCORE_*), or ours if that is
 * higher. score_own() - After it, in the parent: our own again. */
void score_child(const char *score);
void score_own(void);

#endif
