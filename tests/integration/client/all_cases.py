# SPDX-License-Identifier: LGPL-3.0-or-later
"""Importing this registers every case."""
import case_access
import case_acls
import case_attributes
import case_data
import case_directories
import case_eof
import case_errors
import case_files
import case_layouts
import case_links
import case_names
import case_posix_data
import case_posix_errors
import case_posix_links
import case_posix_locks
import case_posix_permissions
import case_posix_random
import case_posix_readdir
import case_posix_times
import case_privileges
import case_sharing
import case_snapshots
import case_work
import case_xattrs

MODULES = (case_files, case_links, case_names, case_attributes,
           case_directories, case_data, case_eof, case_sharing, case_work,
           case_layouts, case_errors, case_access, case_xattrs, case_acls,
           case_privileges, case_snapshots, case_posix_errors,
           case_posix_permissions, case_posix_times, case_posix_links,
           case_posix_data, case_posix_locks, case_posix_readdir,
           case_posix_random)
