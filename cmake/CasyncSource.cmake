# SPDX-License-Identifier: LGPL-3.0-or-later

# casync_source(VARIABLE NAME...): the paths of the plugin's source files of
# those names, whatever their rooms.
function(casync_source variable)
	set(paths)
	foreach(name ${ARGN})
		file(GLOB found
			"${PROJECT_SOURCE_DIR}/FSAL_CEPH_ASYNC/${name}"
			"${PROJECT_SOURCE_DIR}/FSAL_CEPH_ASYNC/*/${name}")
		list(LENGTH found count)
		if(NOT count EQUAL 1)
			message(FATAL_ERROR "the plugin has ${count} files "
				"named ${name}: ${found}")
		endif()
		list(APPEND paths ${found})
	endforeach()
	set(${variable} ${paths} PARENT_SCOPE)
endfunction()
