/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include "config.h"

#include <errno.h>
#include <pthread.h>

#include "fsal.h"

#include "clock.h"
#include "client.h"
#include "connect.h"
#include "identity.h"
#include "mount.h"
#include "take_over.h"
#include "text.h"

/* The keeper has other things to do: a try that takes longer goes on without
 * it, and ends the session when an MDS answers. */
#define AGAIN_TIMEOUT_S 5

/* Each try that finds no MDS may leave a client behind: so there are six of
 * them in the 300 s of Session_Timeout. */
#define FIRST_PAUSE_NS (5 * CASYNC_NS_PER_S)

static pthread_mutex_t noted_lock = PTHREAD_MUTEX_INITIALIZER; /* a leaf */

/* It has the identity of the mount's client, and nothing else of it. */
static int take_over_try(struct casync_mount *mount, const char *nodeid,
			 uint32_t timeout_s)
{
	struct casync_client *client =
		casync_client_new(&mount->identity, NULL);
	struct casync_mount_params params = mount->params;
	int rc;

	params.timeout_s = timeout_s;
	rc = casync_connect_end_session(client, &params, nodeid);
	(void)casync_client_end(client,
				casync_client_end_time_s(AGAIN_TIMEOUT_S));
	if (rc == 0)
		casync_connect_set_time(mount);
	return rc;
}

/* -ENOENT: the node did not serve this mount. */
static bool take_over_is_done(int rc)
{
	return rc == 0 || rc == -ENOENT;
}

static void take_over_log(const struct casync_mount *mount, const char *nodeid,
			  int rc, const char *then)
{
	char uuid[CASYNC_UUID_BYTES];

	casync_connect_uuid(&mount->identity, nodeid, uuid, sizeof(uuid));
	if (take_over_is_done(rc))
		LogEvent(COMPONENT_FSAL,
			 "takeover of node '%s': session '%s': %s", nodeid,
			 uuid, rc == 0 ? "ended" : "there is none");
	else
		LogWarn(COMPONENT_FSAL,
			"takeover of node '%s': session '%s' is not ended: %s; %s",
			nodeid, uuid, casync_connect_reason(rc), then);
}

/* False: too many are noted. */
static bool take_over_note(struct casync_mount *mount, const char *nodeid)
{
	uint64_t now_ns = casync_clock_ns();
	struct casync_take_over *place = NULL, *noted;

	pthread_mutex_lock(&noted_lock);
	for (noted = mount->take_overs;
	     noted < mount->take_overs + CASYNC_TAKE_OVERS_MAX; noted++) {
		if (noted->nodeid == NULL && place == NULL)
			place = noted;
		if (noted->nodeid != NULL &&
		    strcmp(noted->nodeid, nodeid) == 0) {
			place = noted;
			break;
		}
	}
	if (place != NULL) {
		gsh_free(place->nodeid);
		place->nodeid = gsh_strdup(nodeid);
		place->pause_ns = FIRST_PAUSE_NS;
		place->next_ns = now_ns + FIRST_PAUSE_NS;
		place->until_ns = now_ns + mount->params.session_timeout_s *
						   CASYNC_NS_PER_S;
	}
	pthread_mutex_unlock(&noted_lock);
	return place != NULL;
}

int casync_take_over_node(struct casync_mount *mount, const char *nodeid,
			  uint32_t timeout_s)
{
	int rc = take_over_try(mount, nodeid, timeout_s);

	if (take_over_is_done(rc)) {
		take_over_log(mount, nodeid, rc, "");
		return 0;
	}
	take_over_log(mount, nodeid, rc,
		      take_over_note(mount, nodeid)
			      ? "trying again"
			      : "too many nodes to try again");
	return rc;
}

/* The node whose session is due, which the caller frees, or NULL. */
static char *take_over_due(struct casync_take_over *noted, bool now)
{
	uint64_t now_ns = casync_clock_ns();
	char *nodeid = NULL;

	pthread_mutex_lock(&noted_lock);
	if (noted->nodeid != NULL && (now || now_ns >= noted->next_ns)) {
		nodeid = gsh_strdup(noted->nodeid);
		noted->pause_ns *= 2;
		noted->next_ns = now_ns + noted->pause_ns;
	}
	pthread_mutex_unlock(&noted_lock);
	return nodeid;
}

static bool take_over_is_over(struct casync_take_over *noted, int rc)
{
	bool over;

	pthread_mutex_lock(&noted_lock);
	over = take_over_is_done(rc) || casync_clock_ns() >= noted->until_ns;
	if (over) {
		gsh_free(noted->nodeid);
		noted->nodeid = NULL;
	}
	pthread_mutex_unlock(&noted_lock);
	return over;
}

void casync_take_over_again(struct casync_mount *mount, bool now)
{
	struct casync_take_over *noted;
	const char *then;
	char *nodeid;
	int rc;

	for (noted = mount->take_overs;
	     noted < mount->take_overs + CASYNC_TAKE_OVERS_MAX; noted++) {
		nodeid = take_over_due(noted, now);
		if (nodeid == NULL)
			continue;
		rc = take_over_try(
			mount, nodeid,
			MIN(mount->params.timeout_s, AGAIN_TIMEOUT_S));
		then = take_over_is_over(noted, rc)
			       ? "the MDS ends it by its timeout"
			       : "trying again";
		take_over_log(mount, nodeid, rc, then);
		gsh_free(nodeid);
	}
}

void casync_take_over_forget(struct casync_mount *mount)
{
	size_t i;

	for (i = 0; i < CASYNC_TAKE_OVERS_MAX; i++)
		gsh_free(mount->take_overs[i].nodeid);
}
