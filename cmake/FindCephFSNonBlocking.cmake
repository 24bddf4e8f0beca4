# SPDX-License-Identifier: LGPL-3.0-or-later
#
# libcephfs with ceph_ll_nonblocking_readv_writev (Ceph 19.2 and later).
# Probed once, here.  Result: target CephFS::cephfs.

include(CheckCSourceCompiles)

find_path(CEPHFS_INCLUDE_DIR cephfs/libcephfs.h)
find_library(CEPHFS_LIBRARY cephfs)
if(NOT CEPHFS_INCLUDE_DIR OR NOT CEPHFS_LIBRARY)
	message(FATAL_ERROR "libcephfs was not found; install libcephfs-dev "
		"(Debian) or libcephfs-devel (RPM), 19.2 or later.")
endif()

set(CMAKE_REQUIRED_INCLUDES "${CEPHFS_INCLUDE_DIR}")
set(CMAKE_REQUIRED_LIBRARIES "${CEPHFS_LIBRARY}")
set(CMAKE_REQUIRED_DEFINITIONS -D_FILE_OFFSET_BITS=64)
check_c_source_compiles("
#include <cephfs/libcephfs.h>
int main(void)
{
	struct ceph_ll_io_info io = { .fsync = true, .syncdataonly = true };
	return (int)ceph_ll_nonblocking_readv_writev(0, &io);
}" CEPHFS_HAS_NONBLOCKING_IO)
unset(CMAKE_REQUIRED_INCLUDES)
unset(CMAKE_REQUIRED_LIBRARIES)
unset(CMAKE_REQUIRED_DEFINITIONS)

if(NOT CEPHFS_HAS_NONBLOCKING_IO)
	message(FATAL_ERROR "${CEPHFS_LIBRARY} has no "
		"ceph_ll_nonblocking_readv_writev, or its headers lack "
		"ceph_ll_io_info.syncdataonly: Ceph 19.2 (Squid) or later "
		"is needed.")
endif()

add_library(CephFS::cephfs UNKNOWN IMPORTED)
set_target_properties(CephFS::cephfs PROPERTIES
	IMPORTED_LOCATION "${CEPHFS_LIBRARY}"
	INTERFACE_INCLUDE_DIRECTORIES "${CEPHFS_INCLUDE_DIR}")
