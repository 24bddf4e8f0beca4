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

# casync_built(VARIABLE NAME...): the same as the plugin has compiled them, for
# who links them as they are.  What every plugin compiles anew is a path.
function(casync_built variable)
	get_target_property(compiled casync_objects SOURCES)
	set(objects)
	foreach(name ${ARGN})
		casync_source(path ${name})
		file(RELATIVE_PATH source
			"${PROJECT_SOURCE_DIR}/FSAL_CEPH_ASYNC" "${path}")
		if(source IN_LIST compiled)
			string(REPLACE . "[.]" pattern "/${source}.o$")
			list(APPEND objects
				"$<FILTER:$<TARGET_OBJECTS:casync_objects>,INCLUDE,${pattern}>")
		else()
			list(APPEND objects "${path}")
		endif()
	endforeach()
	set(${variable} ${objects} PARENT_SCOPE)
endfunction()
