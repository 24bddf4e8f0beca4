/* SPDX-License-Identifier: LGPL-3.0-or-later */
/**
 * @file handle_ops.h
 * @brief Converts file handles for Ganesha, and loads the keys that sign them.
 *
 * A handle comes from a client, so it can be any bytes.  With Sign_Handles it
 * is refused here, before the MDS is asked, unless a gateway of ours made it
 * for this very export.
 */
#ifndef CASYNC_HANDLE_OPS_H
#define CASYNC_HANDLE_OPS_H

#include "fsal_api.h"

#include "config_keys.h"
#include "filehandle.h"

/**
 * Read the file or object of Handle_Keys and use what it has from now on.
 *
 * @param[in] keys    Without Handle_Keys nothing changes.
 * @param[in] config  RADOS_URLS { } in it says who reads an object; the file
 *                    of one export has no such block, then nothing changes.
 *
 * @return Whether the file is right; if not, the reason has been logged, and
 *         the keys of before stay.
 */
bool casync_handle_ops_load(const struct casync_module_keys *keys,
			    config_file_t config);

/** May the export be added?  If not, the reason has been logged. */
bool casync_handle_ops_can_sign(const struct casync_export_keys *keys,
				uint16_t export_id);

/** exp_ops.wire_to_host: ERR_FSAL_STALE for a signature that is wrong. */
fsal_status_t casync_wire_to_host(struct fsal_export *exp_hdl,
				  fsal_digesttype_t in_type,
				  struct gsh_buffdesc *fh_desc, int flags);

/**
 * Decode a handle that casync_wire_to_host() has let in, or that MDCACHE has
 * kept: of a folder's parent it keeps what goes to the wire, with its
 * signature (mdc_get_parent_handle, Ganesha 9.14).
 */
bool casync_handle_ops_decode(const struct gsh_buffdesc *fh_desc,
			      struct casync_fileid *id);

/** exp_ops.host_to_key. */
fsal_status_t casync_host_to_key(struct fsal_export *exp_hdl,
				 struct gsh_buffdesc *fh_desc);

/** obj_ops.handle_to_wire: the same bytes for NFSv3 and NFSv4. */
fsal_status_t casync_handle_to_wire(const struct fsal_obj_handle *obj_hdl,
				    fsal_digesttype_t output_type,
				    struct gsh_buffdesc *fh_desc);

/** obj_ops.handle_to_key. */
void casync_handle_to_key(struct fsal_obj_handle *obj_hdl,
			  struct gsh_buffdesc *fh_desc);

#endif /* CASYNC_HANDLE_OPS_H */
