/* SPDX-License-Identifier: LGPL-3.0-or-later */
/*
 * The table of keys.  After a change: ninja -C BUILD documents.
 */
#include "config.h"

#include <strings.h>

#include "fsal.h"

#include "durability.h"
#include "keys.h"

#define KIB UINT64_C(1024)
#define MIB (KIB * KIB)
#define GIB (KIB * MIB)
#define TIB (KIB * GIB)

/* Longest user id and secret; cephx keys are 40 characters of base64. */
#define MAX_USER_LEN 1024
#define MAX_SECRET_LEN 1024

/* Ceph's: CEPH_MIN_STRIPE_UNIT, and the default of osd_max_object_size. */
#define MIN_STRIPE_UNIT (64 * KIB)
#define MAX_OBJECT_SIZE (128 * MIB)

static const struct casync_word stable_write_words[] = {
	{"data", CASYNC_STABLE_DATA},
	{"fdatasync", CASYNC_STABLE_FDATASYNC},
	{"full", CASYNC_STABLE_FULL},
	{NULL, 0},
};

static const struct casync_word boolean_words[] = {
	{"true", 1}, {"false", 0}, {"yes", 1}, {"no", 0},
	{"on", 1},   {"off", 0},   {NULL, 0},
};

#define SIZE_OF(type, member) sizeof(((struct type *)0)->member)

#define IN_MODULE(member)                                                    \
	.at = {offsetof(struct casync_module_keys, member), CASYNC_NOWHERE}, \
	.bytes = SIZE_OF(casync_module_keys, member)

#define IN_EXPORT(member)                                                    \
	.at = {CASYNC_NOWHERE, offsetof(struct casync_export_keys, member)}, \
	.bytes = SIZE_OF(casync_export_keys, member)

#define IN_BOTH(member)                                      \
	.at = {offsetof(struct casync_module_keys, member),  \
	       offsetof(struct casync_export_keys, member)}, \
	.bytes = SIZE_OF(casync_module_keys, member)

#define BOOLEAN .type = CASYNC_KEY_BOOLEAN, .words = boolean_words

/* clang-format off */
const struct casync_key casync_keys[] = {
	{ .name = "Ceph_Conf", .type = CASYNC_KEY_PATH, .min = 1,
	  .max = MAXPATHLEN, .change = CASYNC_KEY_RESTART,
	  .unset = "Ceph's own search path, which begins with /etc/ceph/ceph.conf",
	  .summary = "Which ceph.conf the mounts read.",
	  IN_MODULE(ceph_conf) },
	{ .name = "Umask", .type = CASYNC_KEY_OCTAL, .max = 0777,
	  .change = CASYNC_KEY_RESTART,
	  .summary = "Permissions that new files and folders never get.",
	  .text = "Octal numbers begin with 0: 022, not 22.",
	  IN_MODULE(umask) },
	{ .name = "Client_OC", BOOLEAN, .change = CASYNC_KEY_RESTART,
	  .only = "libcephfs hides write-back errors of its object cache from COMMIT, so acknowledged data could be lost unnoticed; remove the key or set it to false",
	  .summary = "FSAL_CEPH's key for libcephfs' object cache, which is off here.",
	  .text = "true is refused: libcephfs hides write-back errors of that cache from COMMIT, so acknowledged data could be lost unnoticed.",
	  IN_MODULE(client_oc) },
	{ .name = "Async", BOOLEAN, .preset = 1,
	  .change = CASYNC_KEY_RESTART,
	  .only = "this FSAL has no blocking data path; use FSAL CEPH for that, or remove the key",
	  .summary = "FSAL_CEPH's key for its asynchronous data path, which is always on here.",
	  .text = "false is refused: this FSAL has no other.",
	  IN_MODULE(async) },
	{ .name = "Zerocopy", BOOLEAN, .change = CASYNC_KEY_RESTART,
	  .summary = "FSAL_CEPH's key; true has no effect and is warned of.",
	  .text = "libcephfs up to Ceph 20 has no reads without a copy.",
	  IN_MODULE(zerocopy) },
	{ .name = "Use_Old_Uuid", BOOLEAN, .change = CASYNC_KEY_RESTART,
	  .summary = "Name the CephFS session in the older form, as FSAL_CEPH's key of that name does.",
	  .text = "A gateway takes over the session of its former run by that name. Set it while gateways of both forms take over from each other.",
	  IN_MODULE(use_old_uuid) },
	{ .name = "Register_Service", BOOLEAN, .change = CASYNC_KEY_RESTART,
	  .summary = "Show this gateway in ceph -s.",
	  .text = "It is registered as nfs.NODEID by Ganesha's connection for RADOS_URLS { watch_url }, so it needs that, and NodeId.",
	  IN_MODULE(register_service) },
	{ .name = "NodeId", .type = CASYNC_KEY_STRING, .min = 1,
	  .max = MAXPATHLEN, .change = CASYNC_KEY_RESTART,
	  .unset = "none",
	  .summary = "Under which name Register_Service registers.",
	  .text = "cephadm sets it. It does not name the CephFS session: that is by Ganesha's own node id, NFSv4 { } or the host's name.",
	  IN_MODULE(nodeid) },
	{ .name = "Max_Inflight_Total", .type = CASYNC_KEY_NUMBER, .min = 256,
	  .max = 16 * MIB, .preset = 32768, .unit = "requests",
	  .change = CASYNC_KEY_RESTART,
	  .summary = "READs and WRITEs of all exports in flight, or waiting for it, at once.",
	  .text = "Over it the client is told to come again (NFS4ERR_DELAY, NFS3ERR_JUKEBOX). Each export may have 256 in any case, so that exports whose Ceph does not answer leave the others alone.",
	  IN_MODULE(max_inflight_total) },
	{ .name = "Max_Inflight_Bytes_Total", .type = CASYNC_KEY_NUMBER,
	  .min = 64 * MIB, .max = TIB, .preset = 4 * GIB, .unit = "bytes",
	  .change = CASYNC_KEY_RESTART,
	  .summary = "Their bytes.",
	  .text = "Ganesha's memory for data is at most this, and 64 MiB for each export, which it may have in any case.",
	  IN_MODULE(max_inflight_bytes_total) },

	{ .name = "Name", .type = CASYNC_KEY_GANESHA,
	  .change = CASYNC_KEY_IDENTITY, .preset_string = "CEPH_ASYNC",
	  .summary = "The FSAL: CEPH_ASYNC.",
	  .text = "The only key that has to be there.",
	  .at = { CASYNC_NOWHERE, 0 } },
	{ .name = "User_Id", .type = CASYNC_KEY_STRING, .max = MAX_USER_LEN,
	  .change = CASYNC_KEY_IDENTITY, .unset = "admin",
	  .summary = "The cephx user, without client.",
	  .text = "It needs rw on the MDS and on the data pools; rwp on the MDS where new files are to have a layout of the export's.",
	  IN_EXPORT(user_id) },
	{ .name = "Secret_Access_Key", .type = CASYNC_KEY_STRING,
	  .max = MAX_SECRET_LEN, .secret = true,
	  .change = CASYNC_KEY_IDENTITY, .unset = "the user's keyring",
	  .summary = "The user's key, where no keyring has it.",
	  .text = "It is never logged.",
	  IN_EXPORT(secret) },
	{ .name = "Filesystem", .type = CASYNC_KEY_STRING, .max = NAME_MAX,
	  .change = CASYNC_KEY_IDENTITY, .unset = "Ceph's default file system",
	  .summary = "Which CephFS.",
	  IN_EXPORT(filesystem) },
	{ .name = "Cmount_Path", .type = CASYNC_KEY_PATH, .min = 1,
	  .max = MAXPATHLEN, .change = CASYNC_KEY_IDENTITY,
	  .unset = "the export's Path",
	  .summary = "Root of the libcephfs mount.",
	  .text = "Exports with the same one, and the same user, key and file system, share a mount: one session, one set of caches. It must be the export's Path or a parent of it.",
	  IN_EXPORT(cmount_path) },
	{ .name = "Sec_Label_Xattr", .type = CASYNC_KEY_STRING, .max = 256,
	  .change = CASYNC_KEY_IDENTITY,
	  .preset_string = "security.selinux",
	  .summary = "Extended attribute that holds NFSv4.2 security labels.",
	  .text = "Used where the export has Security_Label = true.",
	  IN_EXPORT(sec_label_xattr) },

	{ .name = "Stable_Write", .type = CASYNC_KEY_WORD,
	  .words = stable_write_words, .preset = CASYNC_STABLE_DATA,
	  .change = CASYNC_KEY_LIVE,
	  .summary = "What is on disk when a stable WRITE, or a COMMIT, is acknowledged.",
	  .text = "data: the data. Size and times are recovered by the MDS after a crash of the gateway.\n\nfdatasync: the size, too, if the write has made the file grow.\n\nfull: all of it, as FSAL_CEPH does: a journal entry of the MDS for each write.",
	  IN_BOTH(tuning.stable_write) },
	{ .name = "Promote_Unstable", BOOLEAN, .preset = 1,
	  .change = CASYNC_KEY_LIVE,
	  .summary = "Answer an unstable WRITE as FILE_SYNC where it is that anyway.",
	  .text = "Clients then have nothing to COMMIT.",
	  IN_BOTH(tuning.promote_unstable) },
	{ .name = "Max_Inflight", .type = CASYNC_KEY_NUMBER, .min = 1,
	  .max = MIB, .preset = 8192, .unit = "requests",
	  .change = CASYNC_KEY_LIVE,
	  .summary = "READs and WRITEs of an export in flight at once.",
	  .text = "Over it, up to 1024 wait in line, 5 s at most, and no worker with them; more, or longer, and the client is told to come again (NFS4ERR_DELAY, NFS3ERR_JUKEBOX). Metadata operations are never held back.",
	  IN_BOTH(tuning.max_inflight) },
	{ .name = "Max_Inflight_Bytes", .type = CASYNC_KEY_NUMBER, .min = MIB,
	  .max = TIB, .preset = GIB, .unit = "bytes",
	  .change = CASYNC_KEY_LIVE,
	  .summary = "Their bytes.",
	  .text = "Ganesha's memory for data is at most this for each export. Not less than Max_Read and Max_Write.",
	  IN_BOTH(tuning.max_inflight_bytes) },
	{ .name = "Max_Read", .type = CASYNC_KEY_NUMBER, .min = 4 * KIB,
	  .max = FSAL_MAXIOSIZE, .or_zero = true, .unit = "bytes",
	  .change = CASYNC_KEY_LIVE,
	  .unset = "what Ganesha can carry, 64 MiB, or Max_Inflight_Bytes where that is less",
	  .summary = "Largest READ that clients are told of (rsize).",
	  .text = "64 MiB is the most that Ganesha 9 can carry (FSAL_MAXIOSIZE). A Linux client asks for 1 MiB at most. EXPORT { MaxRead } of Ganesha holds as well: the smaller one counts. After a reload clients keep what they have agreed on until they mount again.",
	  IN_BOTH(tuning.max_read) },
	{ .name = "Max_Write", .type = CASYNC_KEY_NUMBER, .min = 4 * KIB,
	  .max = FSAL_MAXIOSIZE, .or_zero = true, .unit = "bytes",
	  .change = CASYNC_KEY_LIVE,
	  .unset = "what Ganesha can carry, 64 MiB, or Max_Inflight_Bytes where that is less",
	  .summary = "Largest WRITE that clients are told of (wsize).",
	  .text = "As Max_Read. A WRITE goes to libcephfs in one piece, and to RADOS in one for each object it touches.",
	  IN_BOTH(tuning.max_write) },
	{ .name = "Gather_Bytes", .type = CASYNC_KEY_NUMBER, .max = 4 * MIB,
	  .preset = 64 * KIB, .unit = "bytes", .change = CASYNC_KEY_LIVE,
	  .summary = "Most bytes of small adjacent WRITEs that go to Ceph in one piece.",
	  .text = "A WRITE that continues others of its file, eight of which are on their way, is queued until one of them is done, and goes with those that came meanwhile; each has its own answer. With fewer on their way none waits. WRITEs larger than half of this go by themselves. 0 turns it off.",
	  IN_BOTH(tuning.gather_bytes) },
	{ .name = "Object_Size", .type = CASYNC_KEY_NUMBER,
	  .min = MIN_STRIPE_UNIT, .max = MAX_OBJECT_SIZE,
	  .multiple = MIN_STRIPE_UNIT, .or_zero = true, .unit = "bytes",
	  .change = CASYNC_KEY_LIVE,
	  .unset = "as the folder says; 4 MiB with Stripe_Unit or Stripe_Count",
	  .summary = "Size of the RADOS objects of new files.",
	  .text = "This and the next three lay out files that are created through this export; those that exist stay as they are. A folder that was given a layout (setfattr -n ceph.dir.layout), itself or by a parent, keeps it.\n\nOSDs refuse objects larger than their osd_max_object_size, by default 128 MiB. Larger objects help streams, smaller ones spread a small file's load.\n\nWhile one of the four is set, each create costs one more request to the MDS, and User_Id needs the MDS capability p (allow rwp): without it, creating a file fails with a line in the log.",
	  IN_BOTH(tuning.object_size) },
	{ .name = "Stripe_Unit", .type = CASYNC_KEY_NUMBER,
	  .min = MIN_STRIPE_UNIT, .max = MAX_OBJECT_SIZE,
	  .multiple = MIN_STRIPE_UNIT, .or_zero = true, .unit = "bytes",
	  .change = CASYNC_KEY_LIVE,
	  .unset = "as the folder says; Object_Size with one of the others",
	  .summary = "Bytes of new files in one object before the next one is used.",
	  .text = "Object_Size must be a multiple of it. Requests that cross its border become several, so that it should not be smaller than they are.",
	  IN_BOTH(tuning.stripe_unit) },
	{ .name = "Stripe_Count", .type = CASYNC_KEY_NUMBER, .min = 1,
	  .max = 1024, .or_zero = true, .unit = "objects",
	  .change = CASYNC_KEY_LIVE,
	  .unset = "as the folder says; 1 with one of the others",
	  .summary = "Objects of new files that are filled in turn.",
	  IN_BOTH(tuning.stripe_count) },
	{ .name = "Data_Pool", .type = CASYNC_KEY_STRING,
	  .max = CASYNC_POOL_NAME_MAX, .change = CASYNC_KEY_LIVE,
	  .unset = "as the folder says",
	  .summary = "Pool of new files' data.",
	  .text = "One of the file system's (ceph fs add_data_pool), on which User_Id may write. In an export, \"\" undoes the block's.",
	  IN_BOTH(data_pool) },
	{ .name = "Mount_Timeout", .type = CASYNC_KEY_NUMBER, .min = 1,
	  .max = 3600, .preset = 60, .unit = "seconds",
	  .change = CASYNC_KEY_IDENTITY,
	  .summary = "Longest wait for the cluster in each step of a mount.",
	  IN_BOTH(tuning.mount_timeout) },
	{ .name = "Session_Timeout", .type = CASYNC_KEY_NUMBER, .min = 30,
	  .max = 86400, .preset = 300, .unit = "seconds",
	  .change = CASYNC_KEY_IDENTITY,
	  .summary = "How long the MDS keeps the session of a gateway that died.",
	  .text = "Longer than its restart takes, or what its clients hold (opens, locks) may go to others before it is back.",
	  IN_BOTH(tuning.session_timeout) },
	{ .name = "Drain_Timeout", .type = CASYNC_KEY_NUMBER, .min = 1,
	  .max = 3600, .preset = 30, .unit = "seconds",
	  .change = CASYNC_KEY_LIVE,
	  .summary = "How long the removal of an export waits for requests in flight.",
	  .text = "What did not end by then is listed in the log, and the export's session stays until Ganesha ends.",
	  IN_BOTH(tuning.drain_timeout) },
	{ .name = "Slow_Op_Warn", .type = CASYNC_KEY_NUMBER, .max = 3600000,
	  /* A third of Ceph's osd_op_complaint_time (30 s). */
	  .preset = 10000, .unit = "milliseconds", .change = CASYNC_KEY_LIVE,
	  .summary = "A READ or WRITE older than this is logged once, and again when it ends.",
	  .text = "0 turns it off.",
	  IN_BOTH(tuning.slow_op_warn) },
	{ .name = "Stats_Interval", .type = CASYNC_KEY_NUMBER, .max = 86400,
	  .preset = 0, .unit = "seconds", .change = CASYNC_KEY_LIVE,
	  .summary = "How often a line of the log says what an export has done.",
	  .text = "0 turns it off. The same counters are in Ganesha's Prometheus endpoint and on DBus.",
	  IN_BOTH(tuning.stats_interval) },
	{ .name = "Ceph_Option", .type = CASYNC_KEY_OPTION, .min = 1,
	  .max = CASYNC_CEPH_OPTION_MAX, .change = CASYNC_KEY_IDENTITY,
	  .unset = "none",
	  .summary = "An option of the Ceph client, \"name = value\", over ceph.conf and the monitors' configuration.",
	  .text = "It may be there more than once, or have several values: Ceph_Option = \"client_cache_size = 65536\", \"debug_client = 1/5\"; those of an export are added to the block's, the last one of a name wins. Names that Ceph does not know are refused, and so are those that would break what this FSAL promises, with the reason. Exports that share a mount must have the same ones.\n\ndebug_client is special: Ceph's default, 0/5, costs a quarter of Ganesha's CPU time for messages that nobody reads, so that it is 0/0 here unless it is set to something else, here, in ceph.conf or in the monitors' configuration. \"debug_client = 0/5\" here keeps Ceph's default.",
	  IN_BOTH(ceph_options) },
	{ .name = NULL },
};
/* clang-format on */

const struct casync_key *casync_key_find(const char *name)
{
	const struct casync_key *key;

	for (key = casync_keys; key->name != NULL; key++) {
		if (strcasecmp(key->name, name) == 0)
			return key;
	}
	return NULL;
}
