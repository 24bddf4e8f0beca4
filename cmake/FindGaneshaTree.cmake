# SPDX-License-Identifier: LGPL-3.0-or-later
#
# NFS-Ganesha installs no headers, so an FSAL is built against the source tree
# of the daemon that will load it and a build tree configured with the flags of
# that daemon: config.h decides the layout of structs.
#
#   GANESHA_SRC    .../nfs-ganesha/src            (has include/fsal_api.h)
#   GANESHA_BUILD  its build tree                 (has include/config.h)
#
# Result: targets Ganesha::headers and, where the library is there, Ganesha::nfsd;
# GANESHA_VERSION, GANESHA_FSAL_API, GANESHA_LIB_DIR.

# FSAL APIs that this FSAL is written for: Ganesha 5.9 and 9.x.
set(CASYNC_FSAL_APIS 12 14)

set(GANESHA_SRC "/usr/src/nfs-ganesha/src" CACHE PATH
	"NFS-Ganesha's source tree (the folder with include/fsal_api.h)")
set(GANESHA_BUILD "/usr/src/nfs-ganesha/build" CACHE PATH
	"NFS-Ganesha's build tree (the folder with include/config.h)")

foreach(_need
		"GANESHA_SRC|${GANESHA_SRC}/include/fsal_api.h"
		"GANESHA_BUILD|${GANESHA_BUILD}/include/config.h")
	string(REPLACE "|" ";" _need "${_need}")
	list(GET _need 0 _var)
	list(GET _need 1 _file)
	if(NOT EXISTS "${_file}")
		message(FATAL_ERROR
			"${_file} is not there. Unpack the source of the "
			"NFS-Ganesha that will load the FSAL, run its cmake "
			"with the distribution's flags, and pass "
			"-DGANESHA_SRC=... -DGANESHA_BUILD=... "
			"(docs/install.md; ${_var} is wrong).")
	endif()
endforeach()

file(STRINGS "${GANESHA_SRC}/include/fsal_api.h" _api
	REGEX "^#define FSAL_MAJOR_VERSION [0-9]+")
string(REGEX REPLACE ".* " "" GANESHA_FSAL_API "${_api}")
if(NOT GANESHA_FSAL_API IN_LIST CASYNC_FSAL_APIS)
	message(FATAL_ERROR
		"NFS-Ganesha in ${GANESHA_SRC} has FSAL API "
		"${GANESHA_FSAL_API}; this FSAL is written for 12 (Ganesha "
		"5.9) and 14 (Ganesha 9.x).")
endif()

file(STRINGS "${GANESHA_BUILD}/include/config.h" _version
	REGEX "^#define GANESHA_VERSION \"")
string(REGEX REPLACE ".*\"(.*)\".*" "\\1" GANESHA_VERSION "${_version}")

# ntirpc's headers: those that Ganesha itself was configured with.
load_cache("${GANESHA_BUILD}" READ_WITH_PREFIX _ganesha_
	NTIRPC_INCLUDE_DIR FSAL_DESTINATION LIB_INSTALL_DIR
	CMAKE_INSTALL_PREFIX)
find_path(NTIRPC_INCLUDE_DIR rpc/xdr.h
	HINTS "${_ganesha_NTIRPC_INCLUDE_DIR}" PATH_SUFFIXES ntirpc)
if(NOT NTIRPC_INCLUDE_DIR)
	message(FATAL_ERROR "ntirpc's headers (rpc/xdr.h) were not found; "
		"pass -DNTIRPC_INCLUDE_DIR=...")
endif()

# The daemon's own library, installed or else from the build tree; the plugin
# itself is not linked with it (FSAL_CEPH_ASYNC/CMakeLists.txt).
find_library(GANESHA_NFSD_LIBRARY ganesha_nfsd
	HINTS "${_ganesha_LIB_INSTALL_DIR}" /usr/lib/ganesha
		/usr/lib64/ganesha "${GANESHA_BUILD}/MainNFSD")
get_filename_component(GANESHA_LIB_DIR "${GANESHA_NFSD_LIBRARY}" DIRECTORY)

set(FSAL_DESTINATION "${_ganesha_FSAL_DESTINATION}" CACHE PATH
	"Where Ganesha looks for FSALs (its Plugins_Dir)")

add_library(Ganesha::headers INTERFACE IMPORTED)
target_include_directories(Ganesha::headers SYSTEM INTERFACE
	"${GANESHA_BUILD}/include" "${GANESHA_SRC}/include"
	"${NTIRPC_INCLUDE_DIR}")
target_compile_definitions(Ganesha::headers INTERFACE
	_GNU_SOURCE _FILE_OFFSET_BITS=64 _LARGEFILE64_SOURCE)

if(GANESHA_NFSD_LIBRARY)
	add_library(Ganesha::nfsd UNKNOWN IMPORTED)
	set_target_properties(Ganesha::nfsd PROPERTIES
		IMPORTED_LOCATION "${GANESHA_NFSD_LIBRARY}")
	target_link_libraries(Ganesha::nfsd INTERFACE Ganesha::headers)
endif()

message(STATUS "NFS-Ganesha ${GANESHA_VERSION}, FSAL API ${GANESHA_FSAL_API}, "
	"${GANESHA_NFSD_LIBRARY}")
