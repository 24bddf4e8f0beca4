/* SPDX-License-Identifier: LGPL-3.0-or-later */
/* The data path fetches no file that nobody has asked for: test_next_files.c
 * has the real one. */
#include "config.h"

#include "next_files.h"

void casync_next_files_read(const struct casync_op *op)
{
}

void casync_next_files_done(struct fsal_obj_handle *obj_hdl,
			    fsal_status_t status, void *read_arg,
			    void *caller_arg)
{
}
