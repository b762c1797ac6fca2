/* SPDX-License-Identifier: Apache-2.0 */
/* list.h - Doubly linked lists of structs with the members prev and next; the head of a list is a
 * pointer to its first element. The arguments are evaluated more than once. */
#ifndef CAISSON_BASE_LIST_H
#define CAISSON_BASE_LIST_H

/* LIST_PUSH() - @item, which is in no list, becomes the first. */
#define LIST_PUSH(head, item)                                                                      \
	do {                                                                                       \
		(item)->prev = NULL;                                                               \
		(item)->next = (head);                                                             \
		if ((item)->next)                                                                  \
			(item)->next->prev = (item);                                               \
		(head) = (item);                                                                   \
	} while (0)

/* LIST_DROP() - @item leaves the list, and keeps its own members. */
#define LIST_DROP(head, item)                                                                      \
	do {                                                                                       \
		if ((item)->prev)                                                                  \
			(item)->prev->next = (item)->next;                                         \
		else                                                                               \
			(head) = (item)->next;                                                     \
		if ((item)->next)                                                                  \
			(item)->next->prev = (item)->prev;                                         \
	} while (0)

#endif
