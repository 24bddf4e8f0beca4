/* SPDX-License-Identifier: LGPL-3.0-or-later */
/**
 * @file read_config.h
 * @brief What ganesha-ceph-async-check calls: it reads a ganesha.conf.
 *
 * The file is read by Ganesha's parser, and our blocks by the code of the
 * plugin that reads them in ganesha.nfsd.  This is a library and not a program
 * because a program needs Ganesha's library, whose file name has its version,
 * before it can say that the version does not fit.
 *
 * Call one of the functions once, and end the process: Ganesha's parser and
 * its parameters are global.
 */
#ifndef CASYNC_READ_CONFIG_H
#define CASYNC_READ_CONFIG_H

/** Python finds these functions by name; all others are hidden. */
#define CASYNC_VISIBLE __attribute__((visibility("default")))

/**
 * Write what the file has, our values, and what is wrong with them, as JSON.
 *
 * @param[in] out_fd  Where to; it is closed.
 *
 * @return 0, or 1 if the file cannot be opened.
 */
CASYNC_VISIBLE int casync_check_read(const char *path, int out_fd);

/**
 * Write the values of Ganesha's own parameters that matter to us, as JSON:
 * those of the file, and Ganesha's defaults.  Ganesha ends the process if it
 * finds something that it cannot go on with.
 */
CASYNC_VISIBLE int casync_check_ganesha(const char *path, int out_fd);

/**
 * Write what Ganesha says of EXPORT { }, EXPORT_DEFAULTS { } and PSEUDOFS { },
 * as JSON.  No FSAL is loaded.
 */
CASYNC_VISIBLE int casync_check_exports(const char *path, int out_fd);

#endif /* CASYNC_READ_CONFIG_H */
