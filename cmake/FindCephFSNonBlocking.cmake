# SPDX-License-Identifier: LGPL-3.0-or-later
#
# libcephfs with ceph_ll_nonblocking_readv_writev (Ceph 19.2 and later).
# Probed once, here.  Result: target CephFS::cephfs, CEPHFS_VERSION.

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
# No header has Ceph's version (LIBCEPHFS_VER_* is the interface's), no .pc
# file is installed: the library is asked.
set(_ask "${CMAKE_CURRENT_BINARY_DIR}/ceph_version.c")
file(WRITE "${_ask}" "
#include <stdio.h>
#include <cephfs/libcephfs.h>
int main(void)
{
	int v[3];

	ceph_version(&v[0], &v[1], &v[2]);
	printf(\"%d.%d.%d\", v[0], v[1], v[2]);
	return 0;
}
")
if(NOT CEPHFS_VERSION AND NOT CMAKE_CROSSCOMPILING)
	try_run(_ran _built "${CMAKE_CURRENT_BINARY_DIR}/ceph_version" "${_ask}"
		CMAKE_FLAGS "-DINCLUDE_DIRECTORIES=${CEPHFS_INCLUDE_DIR}"
		COMPILE_DEFINITIONS -D_FILE_OFFSET_BITS=64
		LINK_LIBRARIES "${CEPHFS_LIBRARY}"
		RUN_OUTPUT_VARIABLE _version)
	if(_built AND _ran EQUAL 0)
		set(CEPHFS_VERSION "${_version}" CACHE STRING
			"The Ceph that libcephfs comes with")
	endif()
endif()
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

# Handle_Keys may be an object.  libcephfs needs librados anyway.
find_path(RADOS_INCLUDE_DIR rados/librados.h)
find_library(RADOS_LIBRARY rados)
if(NOT RADOS_INCLUDE_DIR OR NOT RADOS_LIBRARY)
	message(FATAL_ERROR "librados was not found; install librados-dev "
		"(Debian) or librados-devel (RPM).")
endif()
add_library(Ceph::rados UNKNOWN IMPORTED)
set_target_properties(Ceph::rados PROPERTIES
	IMPORTED_LOCATION "${RADOS_LIBRARY}"
	INTERFACE_INCLUDE_DIRECTORIES "${RADOS_INCLUDE_DIR}")
