/* SPDX-License-Identifier: LGPL-3.0-or-later */
/*
 * The table of keys.  After a change run: ninja -C BUILD documents.
 */
#include "config.h"

#include <strings.h>

#include "fsal.h"

#include "durability.h"
#include "ganesha.h"
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

static const struct casync_word stable_metadata_words[] = {
	{"mds", CASYNC_METADATA_MDS},
	{"journal", CASYNC_METADATA_JOURNAL},
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
	  .unset = "Ceph's own search path; its first file is /etc/ceph/ceph.conf",
	  .summary = "Path of the ceph.conf that the mounts read.",
	  IN_MODULE(ceph_conf) },
	{ .name = "Umask", .type = CASYNC_KEY_OCTAL, .max = 0777,
	  .change = CASYNC_KEY_RESTART,
	  .summary = "Permission bits that new files and folders never get.",
	  .text = "Write it as an octal number with a leading 0: 022, not 22.",
	  IN_MODULE(umask) },
	{ .name = "Client_OC", BOOLEAN, .change = CASYNC_KEY_RESTART,
	  .only = "libcephfs hides write-back errors of its object cache from COMMIT, and acknowledged data could be lost without an error; remove the key or set it to false",
	  .summary = "FSAL_CEPH's key for libcephfs' object cache, which is off here.",
	  .text = "true is refused. libcephfs hides write-back errors of that cache from COMMIT, and acknowledged data could be lost without an error.",
	  IN_MODULE(client_oc) },
	{ .name = "Async", BOOLEAN, .preset = 1,
	  .change = CASYNC_KEY_RESTART,
	  .only = "this FSAL has no blocking data path; use FSAL CEPH, or remove the key",
	  .summary = "FSAL_CEPH's key for its asynchronous data path, which is always on here.",
	  .text = "false is refused: this FSAL has no blocking data path.",
	  IN_MODULE(async) },
	{ .name = "Zerocopy", BOOLEAN, .change = CASYNC_KEY_RESTART,
	  .summary = "FSAL_CEPH's key; true has no effect and logs a warning.",
	  .text = "libcephfs up to Ceph 20 has no zero-copy reads.",
	  IN_MODULE(zerocopy) },
	{ .name = "Use_Old_Uuid", BOOLEAN,
	  .preset = CASYNC_GANESHA_OLD_UUID, .change = CASYNC_KEY_RESTART,
	  .summary = "Use FSAL_CEPH's older form of the session name.",
	  .text = "A restarted gateway finds the session of its former run by this name. Set the key while some gateways still use the older form. With Ganesha 5.9 true is the preset, because its FSAL_CEPH uses that form.",
	  IN_MODULE(use_old_uuid) },
	{ .name = "Register_Service", BOOLEAN, .change = CASYNC_KEY_RESTART,
	  .summary = "Show this gateway in the output of ceph -s.",
	  .text = "The gateway registers as nfs.NODEID. It needs NodeId and RADOS_URLS { watch_url }: Ganesha registers over the connection of watch_url.",
	  IN_MODULE(register_service) },
	{ .name = "NodeId", .type = CASYNC_KEY_STRING, .min = 1,
	  .max = MAXPATHLEN, .change = CASYNC_KEY_RESTART,
	  .unset = "none",
	  .summary = "Node name to register, as nfs.NODEID.",
	  .text = "Register_Service uses it. cephadm sets it. The name of the CephFS session does not depend on it: that name contains Ganesha's own node id, from NFSv4 { } or the host name.",
	  IN_MODULE(nodeid) },
	{ .name = "Handle_Keys", .type = CASYNC_KEY_PLACE, .min = 1,
	  .max = MAXPATHLEN, .change = CASYNC_KEY_LIVE,
	  .unset = "none",
	  .summary = "File or RADOS object with the keys that sign file handles.",
	  .text = "Sign_Handles uses it. The file has one or two lines of 64 hexadecimal digits: \"openssl rand -hex 32\" prints one. The first key signs; handles of both are accepted. Only its owner, root or the user that runs Ganesha, may have access to the file (mode 0600). All gateways of a service need the same keys. rados://POOL/NAMESPACE/OBJECT is an object with such lines: all gateways have the same keys then, and nothing is kept on a host. It is read by the user of RADOS_URLS { UserId } (default admin). \"ganesha-ceph-async-config handle-keys\" makes and changes it. The keys are read again with each reload. How to change a key: docs/security.md.",
	  IN_MODULE(handle_keys) },
	{ .name = "Max_Inflight_Total", .type = CASYNC_KEY_NUMBER, .min = 256,
	  .max = 16 * MIB, .preset = 32768, .unit = "requests",
	  .change = CASYNC_KEY_RESTART,
	  .summary = "Most READs and WRITEs that all exports together may have in flight or waiting.",
	  .text = "Over the limit the client is asked to retry (NFS4ERR_DELAY, NFS3ERR_JUKEBOX). Each export may always have 256: an export whose Ceph does not answer cannot block the others.",
	  IN_MODULE(max_inflight_total) },
	{ .name = "Max_Inflight_Bytes_Total", .type = CASYNC_KEY_NUMBER,
	  .min = 64 * MIB, .max = TIB, .preset = 4 * GIB, .unit = "bytes",
	  .change = CASYNC_KEY_RESTART,
	  .summary = "Most bytes of READs and WRITEs that all exports together may have in flight or waiting.",
	  .text = "It bounds Ganesha's memory for data. Each export may always have 64 MiB; this may come on top.",
	  IN_MODULE(max_inflight_bytes_total) },
	{ .name = "Cache_Bytes", .type = CASYNC_KEY_NUMBER,
	  .max = TIB, .preset = 256 * MIB, .unit = "bytes",
	  .change = CASYNC_KEY_LIVE,
	  .summary = "Memory of the read cache, for all exports together; 0 turns it off.",
	  .text = "It keeps data that READs have fetched. Each READ asks libcephfs whether the file has changed; while nobody else uses the file, that costs no round trip. Exports share the memory fairly. It comes on top of Max_Inflight_Bytes_Total. The clocks of all clients of the file system must agree within 2 s.",
	  IN_MODULE(cache_bytes) },
	{ .name = "Metrics_File", .type = CASYNC_KEY_PATH, .min = 1,
	  .max = MAXPATHLEN, .change = CASYNC_KEY_LIVE,
	  .unset = "none",
	  .summary = "Path of a file for node_exporter's textfile collector, with the metrics in it.",
	  .text = "node_exporter reads files whose names end in .prom. The metrics and their names are those of Ganesha's own endpoint, which Ganesha 5.9 does not have. The file is replaced each second by rename(), and removed at the end. Its folder must exist. See docs/metrics.md.",
	  IN_MODULE(metrics_file) },

	{ .name = "Name", .type = CASYNC_KEY_GANESHA,
	  .change = CASYNC_KEY_IDENTITY, .preset_string = "CEPH_ASYNC",
	  .summary = "Name of the FSAL: CEPH_ASYNC.",
	  .text = "This is the only required key.",
	  .at = { CASYNC_NOWHERE, 0 } },
	{ .name = "User_Id", .type = CASYNC_KEY_STRING, .max = MAX_USER_LEN,
	  .change = CASYNC_KEY_IDENTITY, .unset = "admin",
	  .summary = "Name of the cephx user, without the prefix client.",
	  .text = "The user needs rw on the MDS and on the data pools. It needs rwp on the MDS if Object_Size, Stripe_Unit, Stripe_Count or Data_Pool is set.",
	  IN_EXPORT(user_id) },
	{ .name = "Secret_Access_Key", .type = CASYNC_KEY_STRING,
	  .max = MAX_SECRET_LEN, .secret = true,
	  .change = CASYNC_KEY_IDENTITY, .unset = "the user's keyring",
	  .summary = "The user's cephx key, if no keyring has it.",
	  .text = "It is never logged. Exports with the same user, file system "
	  "and Cmount_Path need the same key, or none, unless Share_Client "
	  "is false: another one is refused.",
	  IN_EXPORT(secret) },
	{ .name = "Filesystem", .type = CASYNC_KEY_STRING, .max = NAME_MAX,
	  .change = CASYNC_KEY_IDENTITY, .unset = "Ceph's default file system",
	  .summary = "Name of the CephFS file system.",
	  IN_EXPORT(filesystem) },
	{ .name = "Cmount_Path", .type = CASYNC_KEY_PATH, .min = 1,
	  .max = MAXPATHLEN, .change = CASYNC_KEY_IDENTITY,
	  .unset = "the export's Path",
	  .summary = "Path in CephFS that the libcephfs mount has as its root.",
	  .text = "Exports share a mount if they have the same Cmount_Path, user, key and file system, unless Share_Client is false. They then share one session and one set of caches. It must be the export's Path or a parent of it.",
	  IN_EXPORT(cmount_path) },
	{ .name = "Sec_Label_Xattr", .type = CASYNC_KEY_STRING, .max = 256,
	  .change = CASYNC_KEY_IDENTITY,
	  .preset_string = "security.selinux",
	  .summary = "Extended attribute that holds NFSv4.2 security labels.",
	  .text = "It is used if the export has Security_Label = true.",
	  IN_EXPORT(sec_label_xattr) },

	{ .name = "Sign_Handles", BOOLEAN,
	  .change = CASYNC_KEY_IDENTITY,
	  .summary = "Sign file handles, and refuse those that no gateway of ours has signed.",
	  .text = "Without it a client can make up a handle of any file that User_Id can reach, also of a file outside of the export. With it such a handle gets NFS4ERR_STALE (NFS3ERR_STALE), and the MDS is not asked. A handle is good for one Export_Id. It needs Handle_Keys. FSAL_CEPH accepts signed handles without a look at the signature. Its own have none. Clients that are mounted when it is turned on have to mount again.",
	  IN_BOTH(sign_handles) },

	{ .name = "Stable_Write", .type = CASYNC_KEY_WORD,
	  .words = stable_write_words, .preset = CASYNC_STABLE_DATA,
	  .change = CASYNC_KEY_LIVE,
	  .summary = "What is on disk when a stable WRITE or a COMMIT is acknowledged.",
	  .text = "data: the data. After a crash of the gateway the MDS recovers size and times.\n\nfdatasync: the data, and the size if the write made the file larger.\n\nfull: data, size and times, as FSAL_CEPH does. Each write costs an entry in the journal of the MDS, or shares one with others in flight.",
	  IN_BOTH(tuning.stable_write) },
	{ .name = "Stable_Metadata", .type = CASYNC_KEY_WORD,
	  .words = stable_metadata_words, .preset = CASYNC_METADATA_MDS,
	  .change = CASYNC_KEY_LIVE,
	  .summary = "What is on disk when a changed name, owner, mode or time is acknowledged.",
	  .text = "It is for CREATE, MKDIR, SYMLINK, MKNOD, REMOVE, RMDIR, RENAME and LINK, and for a SETATTR of owner, mode or times of a file.\n\nmds: the MDS has the change. It is lost only if MDS and gateway die together before the MDS has written its journal, as in a power failure of a host that has both. The MDS is asked to write names, mostly within 20 ms; attributes it writes by itself, up to 5 s later.\n\njournal: the MDS has written its journal. Requests of one directory, or of one file, share that.\n\nA SETATTR of the size, of an ACL or of a directory waits for the journal with both. So does one of a file with another libcephfs than 20.2.4. docs/durability.md has a table.",
	  IN_BOTH(tuning.stable_metadata) },
	{ .name = "Promote_Unstable", BOOLEAN, .preset = 1,
	  .change = CASYNC_KEY_LIVE,
	  .summary = "Answer FILE_SYNC to an unstable WRITE that is already durable.",
	  .text = "The client then needs no COMMIT.",
	  IN_BOTH(tuning.promote_unstable) },
	{ .name = "Max_Inflight", .type = CASYNC_KEY_NUMBER, .min = 1,
	  .max = MIB, .preset = 8192, .unit = "requests",
	  .change = CASYNC_KEY_LIVE,
	  .summary = "Most READs and WRITEs that an export may have in flight.",
	  .text = "Over the limit up to 1024 requests wait, 5 s at most. No worker waits with them. If more requests come, or the wait is longer, the client is asked to retry (NFS4ERR_DELAY, NFS3ERR_JUKEBOX). The limit does not apply to metadata operations.",
	  IN_BOTH(tuning.max_inflight) },
	{ .name = "Max_Inflight_Bytes", .type = CASYNC_KEY_NUMBER, .min = MIB,
	  .max = TIB, .preset = GIB, .unit = "bytes",
	  .change = CASYNC_KEY_LIVE,
	  .summary = "Most bytes of READs and WRITEs that an export may have in flight.",
	  .text = "It bounds Ganesha's memory for the export's data. It must not be less than Max_Read or Max_Write.",
	  IN_BOTH(tuning.max_inflight_bytes) },
	{ .name = "Max_Read", .type = CASYNC_KEY_NUMBER, .min = 4 * KIB,
	  .max = FSAL_MAXIOSIZE, .or_zero = true, .unit = "bytes",
	  .change = CASYNC_KEY_LIVE,
	  .unset = "64 MiB, or Max_Inflight_Bytes if that is less",
	  .summary = "Largest READ that the server offers to clients (rsize).",
	  .text = "Ganesha 9 cannot carry more than 64 MiB (FSAL_MAXIOSIZE). A Linux client asks for 1 MiB at most. Ganesha's EXPORT { MaxRead } applies too: the smaller value counts. After a reload a client keeps its old value until it mounts again.",
	  IN_BOTH(tuning.max_read) },
	{ .name = "Max_Write", .type = CASYNC_KEY_NUMBER, .min = 4 * KIB,
	  .max = FSAL_MAXIOSIZE, .or_zero = true, .unit = "bytes",
	  .change = CASYNC_KEY_LIVE,
	  .unset = "64 MiB, or Max_Inflight_Bytes if that is less",
	  .summary = "Largest WRITE that the server offers to clients (wsize).",
	  .text = "The rules of Max_Read apply, with EXPORT { MaxWrite }. A WRITE is one call of libcephfs. libcephfs sends one piece to RADOS for each object that the WRITE touches.",
	  IN_BOTH(tuning.max_write) },
	{ .name = "Gather_Bytes", .type = CASYNC_KEY_NUMBER, .max = 4 * MIB,
	  .preset = 64 * KIB, .unit = "bytes", .change = CASYNC_KEY_LIVE,
	  .summary = "Most bytes of small adjacent WRITEs that share one call of libcephfs.",
	  .text = "A WRITE waits if it continues a stream of WRITEs and enough calls of that stream are in flight. When one call is answered, the waiting WRITEs share the next call. Each WRITE gets its own answer. Enough is 8 at first. Then it is 2 to 128: one for each 0.2 ms that a call takes, so that no WRITE waits where it gains nothing. A WRITE larger than half of this value is never shared. 0 turns it off.",
	  IN_BOTH(tuning.gather_bytes) },
	{ .name = "Object_Size", .type = CASYNC_KEY_NUMBER,
	  .min = MIN_STRIPE_UNIT, .max = MAX_OBJECT_SIZE,
	  .multiple = MIN_STRIPE_UNIT, .or_zero = true, .unit = "bytes",
	  .change = CASYNC_KEY_LIVE,
	  .unset = "the folder's value; 4 MiB if Stripe_Unit or Stripe_Count is set",
	  .summary = "Size of the RADOS objects of new files.",
	  .text = "Object_Size, Stripe_Unit, Stripe_Count and Data_Pool set the layout of files that are created through this export. Existing files keep their layout. If a folder or a parent of it has a layout (setfattr -n ceph.dir.layout), that layout wins.\n\nAn OSD refuses objects larger than its osd_max_object_size, 128 MiB by default. A stream uses one disk for the length of an object: with larger objects it has fewer at a time. Smaller objects spread the load of a small file.\n\nWhile one of the four keys is set, each create costs one more request to the MDS. User_Id then needs the MDS capability p (allow rwp). Without it each create fails, with a line in the log.",
	  IN_BOTH(tuning.object_size) },
	{ .name = "Stripe_Unit", .type = CASYNC_KEY_NUMBER,
	  .min = MIN_STRIPE_UNIT, .max = MAX_OBJECT_SIZE,
	  .multiple = MIN_STRIPE_UNIT, .or_zero = true, .unit = "bytes",
	  .change = CASYNC_KEY_LIVE,
	  .unset = "the folder's value; equal to Object_Size if Object_Size or Stripe_Count is set",
	  .summary = "Bytes of a new file that go to one object before the next object is used.",
	  .text = "Object_Size must be a multiple of it. A request that crosses a border of it is split. So it should not be smaller than the requests.",
	  IN_BOTH(tuning.stripe_unit) },
	{ .name = "Stripe_Count", .type = CASYNC_KEY_NUMBER, .min = 1,
	  .max = 1024, .or_zero = true, .unit = "objects",
	  .change = CASYNC_KEY_LIVE,
	  .unset = "the folder's value; 1 if Object_Size or Stripe_Unit is set",
	  .summary = "Number of objects that the data of a new file are striped over.",
	  IN_BOTH(tuning.stripe_count) },
	{ .name = "Data_Pool", .type = CASYNC_KEY_STRING,
	  .max = CASYNC_POOL_NAME_MAX, .change = CASYNC_KEY_LIVE,
	  .unset = "the folder's value",
	  .summary = "Pool for the data of new files.",
	  .text = "It must be a data pool of the file system (ceph fs add_data_pool) that User_Id may write to. In an export, \"\" cancels the value of the block.",
	  IN_BOTH(data_pool) },
	{ .name = "Share_Client", BOOLEAN, .preset = 1,
	  .change = CASYNC_KEY_IDENTITY,
	  .summary = "Share one CephFS client with the exports that have the same Cmount_Path, user, key and file system.",
	  .text = "With false an export has a client of its own: its requests do not wait for those of other exports in libcephfs (client_lock), and a loss of its session is its own. It costs a session, and memory of the MDS for what two exports both know. A file that is used through two of them is coherent, as between two gateways. While the MDS does not answer, all clients together keep at most three quarters of Ganesha's workers. Set it in the block to reach the exports that \"ceph nfs export create\" makes: they all have one user and Cmount_Path = \"/\". File handles stay the same, so clients stay mounted when the key changes.",
	  IN_BOTH(tuning.share_client) },
	{ .name = "Mount_Timeout", .type = CASYNC_KEY_NUMBER, .min = 1,
	  .max = 3600, .preset = 120, .unit = "seconds",
	  .change = CASYNC_KEY_IDENTITY,
	  .summary = "Longest time that each step of a mount waits for the cluster.",
	  IN_BOTH(tuning.mount_timeout) },
	{ .name = "Session_Timeout", .type = CASYNC_KEY_NUMBER, .min = 30,
	  .max = 86400, .preset = 300, .unit = "seconds",
	  .change = CASYNC_KEY_IDENTITY,
	  .summary = "How long the MDS keeps the session of a gateway that crashed.",
	  .text = "It must be longer than a restart of the gateway. Otherwise other clients may get the locks and opens of its clients before it is back.",
	  IN_BOTH(tuning.session_timeout) },
	{ .name = "Reconnect", BOOLEAN, .preset = 1,
	  .change = CASYNC_KEY_LIVE,
	  .summary = "Make a new CephFS client when the session is lost.",
	  .text = "A session is lost if the MDS or an administrator evicts the client, or blocklists its address. Until the new client serves, NFS clients are asked to retry (NFS4ERR_DELAY, NFS3ERR_JUKEBOX). With false, requests fail with EIO until a reload sets true, or ganesha.nfsd is restarted. Exports that share a mount use the value of the oldest of them.",
	  IN_BOTH(tuning.reconnect) },
	{ .name = "Reconnect_Timeout", .type = CASYNC_KEY_NUMBER, .min = 1,
	  /* A week. */
	  .max = 604800, .or_zero = true, .unit = "seconds",
	  .change = CASYNC_KEY_LIVE, .unset = "no limit",
	  .summary = "How long the plugin tries to make a new CephFS client after a loss of the session.",
	  .text = "After that time requests fail with EIO. Then only a restart of ganesha.nfsd helps. 0 is no limit. Exports that share a mount use the value of the oldest of them.",
	  IN_BOTH(tuning.reconnect_timeout) },
	{ .name = "Drain_Timeout", .type = CASYNC_KEY_NUMBER, .min = 1,
	  .max = 3600, .preset = 30, .unit = "seconds",
	  .change = CASYNC_KEY_LIVE,
	  .summary = "Longest time that the removal of an export waits for requests in flight.",
	  .text = "After that time the log lists the requests that did not end. The export's session then stays until Ganesha ends. When Ganesha is told to end while requests wait for the MDS for so long, the process ends without them.",
	  IN_BOTH(tuning.drain_timeout) },
	{ .name = "Slow_Op_Warn", .type = CASYNC_KEY_NUMBER, .max = 3600000,
	  /* A third of Ceph's osd_op_complaint_time (30 s). */
	  .preset = 10000, .unit = "milliseconds", .change = CASYNC_KEY_LIVE,
	  .summary = "Age at which a READ or WRITE is logged as slow; it is logged again when it ends.",
	  .text = "0 turns it off.",
	  IN_BOTH(tuning.slow_op_warn) },
	{ .name = "Stats_Interval", .type = CASYNC_KEY_NUMBER, .max = 86400,
	  .preset = 0, .unit = "seconds", .change = CASYNC_KEY_LIVE,
	  .summary = "Interval of a log line with the counters of an export.",
	  .text = "0 turns it off. Ganesha's Prometheus endpoint shows the same counters.",
	  IN_BOTH(tuning.stats_interval) },
	{ .name = "Ceph_Option", .type = CASYNC_KEY_OPTION, .min = 1,
	  .max = CASYNC_CEPH_OPTION_MAX, .change = CASYNC_KEY_IDENTITY,
	  .unset = "none",
	  .summary = "An option of the Ceph client, as \"name = value\"; it overrides ceph.conf and the monitors' configuration.",
	  .text = "The key may occur several times, and may have several values: Ceph_Option = \"client_cache_size = 65536\", \"debug_client = 1/5\". The options of an export are added to the options of the block. If a name occurs twice, the last value wins. A name that Ceph does not know is refused. An option that would break a promise of this FSAL is refused, with the reason. Exports that share a mount must have the same options.\n\nThis FSAL changes one default of Ceph: debug_client is 0/0 here, because Ceph's default, 0/5, costs a quarter of Ganesha's CPU time. Any other value from ceph.conf, the monitors' configuration or this key is kept. To get Ceph's default, set \"debug_client = 0/5\" in this key.",
	  IN_BOTH(ceph_options) },
	{ .name = NULL },
};
/* clang-format on */

const struct casync_key *casync_keys_find(const char *name)
{
	const struct casync_key *key;

	for (key = casync_keys; key->name != NULL; key++) {
		if (strcasecmp(key->name, name) == 0)
			return key;
	}
	return NULL;
}
