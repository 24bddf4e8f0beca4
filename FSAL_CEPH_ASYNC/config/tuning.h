/* SPDX-License-Identifier: LGPL-3.0-or-later */
/**
 * @file tuning.h
 * @brief The numeric keys that both blocks have, as a struct.
 */
#ifndef CASYNC_TUNING_H
#define CASYNC_TUNING_H

#include <stdint.h>

/**
 * Values of CEPH_ASYNC { } and of EXPORT { FSAL { } }; the export's value wins.
 *
 * A reload changes an export's values while requests read them.  So each is
 * read with casync_tuning_read().  A request that uses a value twice reads it
 * once.
 */
struct casync_tuning {
	uint32_t stable_write;	    /**< enum casync_stable_write */
	uint32_t promote_unstable;  /**< boolean */
	uint32_t stable_metadata;   /**< enum casync_stable_metadata */
	uint32_t max_inflight;	    /**< requests */
	uint32_t max_read;	    /**< bytes; 0 is not set */
	uint32_t max_write;	    /**< bytes; 0 is not set */
	uint32_t mount_timeout;	    /**< seconds, per step of a mount */
	uint32_t session_timeout;   /**< seconds */
	uint32_t share_client;	    /**< boolean */
	uint32_t reconnect;	    /**< boolean */
	uint32_t reconnect_timeout; /**< seconds; 0 is no limit */
	uint32_t drain_timeout;	    /**< seconds */
	uint32_t slow_op_warn;	    /**< milliseconds; 0 is off */
	uint32_t stats_interval;    /**< seconds; 0 is off */
	uint32_t object_size;	    /**< bytes; 0 is not set */
	uint32_t stripe_unit;	    /**< bytes; 0 is not set */
	uint32_t stripe_count;	    /**< objects; 0 is not set */
	uint32_t gather_bytes;	    /**< of one call; 0 is off */
	uint64_t max_inflight_bytes;
};

/** Read a member; a reload may change it at the same time. */
static inline uint32_t casync_tuning_read(const uint32_t *member)
{
	return __atomic_load_n(member, __ATOMIC_RELAXED);
}

#endif /* CASYNC_TUNING_H */
