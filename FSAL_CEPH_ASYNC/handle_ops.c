/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include "config.h"

#include <stdio.h>
#include <string.h>

#include "fsal.h"

#include "client_mgr.h"

#include "clock.h"
#include "errors.h"
#include "export.h"
#include "handle_keys.h"
#include "handle_ops.h"
#include "name.h"
#include "object.h"
#include "rados_object.h"
#include "signature.h"

#define WHY_BYTES 256

/* Of a user's name: cephadm's has cluster, host and a random word. */
#define READER_BYTES 512

/* Of an object with keys: two lines, and remarks. */
#define OBJECT_BYTES 4096

/* The last one that a configuration has named.  The start and reloads are one
 * after the other. */
static char reader[READER_BYTES];

/* As Ganesha reads rados:// itself. */
static void handle_ops_note_reader(config_file_t config)
{
	const void *block =
		casync_config_node_block(config, "RADOS_URLS", NULL);
	const char *id = NULL;

	if (block != NULL)
		id = casync_config_node_value(block, "UserId");
	if (id != NULL)
		(void)snprintf(reader, sizeof(reader), "%s", id);
}

static bool handle_ops_read(const struct casync_module_keys *keys,
			    struct casync_handle_keys *fresh, char *why,
			    size_t size)
{
	const struct casync_rados_user user = {
		.user_id = reader[0] != '\0' ? reader : NULL,
		.ceph_conf = keys->ceph_conf,
	};
	char text[OBJECT_BYTES];

	if (!casync_rados_object_is_url(keys->handle_keys))
		return casync_handle_keys_read(keys->handle_keys, fresh, why,
					       size);
	return casync_rados_object_read(keys->handle_keys, &user, text,
					sizeof(text), why, size) &&
	       casync_handle_keys_read_text(text, fresh, why, size);
}

bool casync_handle_ops_load(const struct casync_module_keys *keys,
			    config_file_t config)
{
	struct casync_handle_keys fresh;
	char why[WHY_BYTES];
	int rc;

	if (keys->handle_keys == NULL)
		return true;
	handle_ops_note_reader(config);
	if (!handle_ops_read(keys, &fresh, why, sizeof(why))) {
		LogCrit(COMPONENT_CONFIG, "Handle_Keys = %s is refused: %s",
			keys->handle_keys, why);
		return false;
	}
	rc = casync_signature_use(&fresh);
	if (rc == 0)
		LogEvent(COMPONENT_FSAL,
			 "Handle_Keys = %s: the first of %u keys signs",
			 keys->handle_keys, fresh.count);
	else
		LogCrit(COMPONENT_CONFIG,
			"Handle_Keys: this OpenSSL has no HMAC-SHA256: %s",
			strerror(-rc));
	casync_handle_keys_wipe(&fresh);
	return rc == 0;
}

bool casync_handle_ops_can_sign(const struct casync_export_keys *keys,
				uint16_t export_id)
{
	if (!keys->sign_handles || casync_signature_ready())
		return true;
	LogCrit(COMPONENT_CONFIG,
		"export %" PRIu16
		": Sign_Handles = true is refused: there are no keys; set Handle_Keys in %s { } to a file with one",
		export_id, casync_name);
	return false;
}

static const char *handle_ops_client(void)
{
	return op_ctx != NULL && op_ctx->client != NULL
		       ? op_ctx->client->hostaddr_str
		       : "(unknown)";
}

/* Say it, but not for each handle. */
static void handle_ops_log_refused(struct casync_export *exp)
{
	if (!casync_clock_once_a_minute(&exp->refused_line_ns))
		return;
	LogWarn(COMPONENT_FSAL,
		"export %" PRIu16
		": client %s sent a file handle without our signature (no other such line for a minute); if it mounted before Sign_Handles, Handle_Keys or Export_Id was changed, it has to mount again",
		exp->export.export_id, handle_ops_client());
}

static fsal_status_t handle_ops_refuse(struct casync_export *exp)
{
	casync_metrics_count(casync_metrics_shard(&exp->metrics),
			     CASYNC_C_HANDLES_REFUSED, 1);
	handle_ops_log_refused(exp);
	return fsalstat(ERR_FSAL_STALE, 0);
}

/* Take the signature off, if there has to be one and it is right. */
static fsal_status_t handle_ops_unsign(struct casync_export *exp,
				       struct gsh_buffdesc *fh_desc)
{
	int rc = 0;

	if (exp->keys.sign_handles) {
		rc = fh_desc->len == CASYNC_SIGNED_WIRE_BYTES
			     ? casync_signature_check(fh_desc->addr,
						      exp->export.export_id)
			     : -ESTALE;
	}
	if (rc == -ESTALE)
		return handle_ops_refuse(exp);
	if (rc != 0)
		return casync_errors_status(rc);
	/* Without Sign_Handles those that are signed are as good as any. */
	if (fh_desc->len == CASYNC_SIGNED_WIRE_BYTES)
		fh_desc->len = CASYNC_WIRE_BYTES;
	return fsalstat(ERR_FSAL_NO_ERROR, 0);
}

/* The host form is the wire form: little-endian everywhere. */
fsal_status_t casync_wire_to_host(struct fsal_export *exp_hdl,
				  fsal_digesttype_t in_type,
				  struct gsh_buffdesc *fh_desc, int flags)
{
	struct casync_export *exp = casync_export_of(exp_hdl);
	struct casync_fileid id;
	fsal_status_t status;

	(void)in_type;
	(void)flags;
	status = handle_ops_unsign(exp, fh_desc);
	if (FSAL_IS_ERROR(status))
		return status;
	if (!casync_filehandle_decode(fh_desc->addr, fh_desc->len, &id))
		return fsalstat(ERR_FSAL_BADHANDLE, 0);
	/* The same inode number in another file system is another file. */
	if (id.fscid != exp->mount->fscid)
		return fsalstat(ERR_FSAL_STALE, 0);
	return fsalstat(ERR_FSAL_NO_ERROR, 0);
}

bool casync_handle_ops_decode(const struct gsh_buffdesc *fh_desc,
			      struct casync_fileid *id)
{
	size_t len = fh_desc->len == CASYNC_SIGNED_WIRE_BYTES
			     ? CASYNC_WIRE_BYTES
			     : fh_desc->len;

	return casync_filehandle_decode(fh_desc->addr, len, id);
}

fsal_status_t casync_host_to_key(struct fsal_export *exp_hdl,
				 struct gsh_buffdesc *fh_desc)
{
	struct casync_fileid id;

	if (!casync_handle_ops_decode(fh_desc, &id))
		return fsalstat(ERR_FSAL_BADHANDLE, 0);
	/* Ganesha leaves FSAL_KEY_EXTRA_BYTES of room. */
	casync_filehandle_key(&id, exp_hdl->export_id, fh_desc->addr);
	fh_desc->len = CASYNC_KEY_BYTES;
	return fsalstat(ERR_FSAL_NO_ERROR, 0);
}

fsal_status_t casync_handle_to_wire(const struct fsal_obj_handle *obj_hdl,
				    fsal_digesttype_t output_type,
				    struct gsh_buffdesc *fh_desc)
{
	const struct casync_object *obj =
		container_of(obj_hdl, const struct casync_object, handle);
	bool signs = obj->exp->keys.sign_handles;
	size_t len = signs ? CASYNC_SIGNED_WIRE_BYTES : CASYNC_WIRE_BYTES;

	(void)output_type;
	if (fh_desc->len < len)
		return fsalstat(ERR_FSAL_TOOSMALL, 0);
	casync_filehandle_encode(&obj->id, fh_desc->addr);
	if (signs) {
		int rc = casync_signature_add(fh_desc->addr,
					      obj->exp->export.export_id);

		if (rc != 0)
			return casync_errors_status(rc);
	}
	fh_desc->len = len;
	return fsalstat(ERR_FSAL_NO_ERROR, 0);
}

void casync_handle_to_key(struct fsal_obj_handle *obj_hdl,
			  struct gsh_buffdesc *fh_desc)
{
	fh_desc->addr = casync_object_of(obj_hdl)->key;
	fh_desc->len = CASYNC_KEY_BYTES;
}
