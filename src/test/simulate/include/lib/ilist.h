/*-------------------------------------------------------------------------
 *
 * ilist.h
 *	  Stands in for upstream's header of this name; see ../postgres.h.
 *
 * Doubly linked rings, written anew, with a check of the links at each
 * removal: a node that is removed twice fails at once.
 *
 * Copyright (c) 2026, the pgawait authors
 *
 *-------------------------------------------------------------------------
 */
#ifndef SIMULATE_ILIST_H
#define SIMULATE_ILIST_H

typedef struct dlist_node
{
	struct dlist_node *prev;
	struct dlist_node *next;
} dlist_node;

typedef struct dlist_head
{
	dlist_node	head;
} dlist_head;

typedef struct dlist_iter
{
	dlist_node *cur;
} dlist_iter;

typedef struct dlist_mutable_iter
{
	dlist_node *cur;
	dlist_node *next;
} dlist_mutable_iter;

#define DLIST_STATIC_INIT(name)		{{&(name).head, &(name).head}}
#define dlist_container(type, member, node) \
	((type *) ((char *) (node) - offsetof(type, member)))
#define dlist_head_element(type, member, list) \
	dlist_container(type, member, dlist_head_node(list))
#define dlist_foreach(iter, list) \
	for ((iter).cur = (list)->head.next; (iter).cur != &(list)->head; \
		 (iter).cur = (iter).cur->next)
#define dlist_foreach_modify(iter, list) \
	for ((iter).cur = (list)->head.next; \
		 (iter).cur != &(list)->head && ((iter).next = (iter).cur->next, true); \
		 (iter).cur = (iter).next)

static inline void
dlist_init(dlist_head *list)
{
	list->head.prev = list->head.next = &list->head;
}

static inline bool
dlist_is_empty(const dlist_head *list)
{
	return list->head.next == &list->head;
}

static inline void
sim_link(dlist_node *before, dlist_node *node)
{
	node->prev = before;
	node->next = before->next;
	before->next->prev = node;
	before->next = node;
}

static inline void
dlist_push_head(dlist_head *list, dlist_node *node)
{
	sim_link(&list->head, node);
}

static inline void
dlist_push_tail(dlist_head *list, dlist_node *node)
{
	sim_link(list->head.prev, node);
}

static inline void
dlist_delete(dlist_node *node)
{
	Assert(node->prev->next == node && node->next->prev == node);
	node->prev->next = node->next;
	node->next->prev = node->prev;
}

static inline dlist_node *
dlist_head_node(dlist_head *list)
{
	return list->head.next;
}

static inline dlist_node *
dlist_pop_head_node(dlist_head *list)
{
	dlist_node *node = list->head.next;

	Assert(node != &list->head);
	dlist_delete(node);
	return node;
}

#endif							/* SIMULATE_ILIST_H */
