# SPDX-License-Identifier: LGPL-3.0-or-later
#
# casync_preloaded(NAME FAKE [OPTION...])
#
# A library that is preloaded into a daemon for a study below
# tests/bench/studies: NAME.c of the folder.  `cmake --install BUILD --component
# lab` installs it, as nfsload, and nothing else does.  test_NAME, of test_NAME.c,
# asks whether it does what it should before the library of FAKE.  OPTIONs are
# the compiler's, for all three.
function(casync_preloaded name fake)
	add_library(${name} SHARED ${name}.c)
	target_link_libraries(${name} PRIVATE Threads::Threads ${CMAKE_DL_LIBS})
	set_target_properties(${name} PROPERTIES C_VISIBILITY_PRESET hidden)
	install(TARGETS ${name} LIBRARY DESTINATION /usr/local/lib
		COMPONENT lab EXCLUDE_FROM_ALL)

	add_library(${name}_fake SHARED ${fake})
	add_executable(test_${name} test_${name}.c)
	target_include_directories(test_${name} PRIVATE "${CMOCKA_INCLUDE_DIR}")
	# In this order: the calls of the test and of the fake meet the library
	# first.
	target_link_options(test_${name} PRIVATE -Wl,--no-as-needed)
	target_link_libraries(test_${name} PRIVATE
		${name} ${name}_fake "${CMOCKA_LIBRARY}" Threads::Threads)
	foreach(target ${name} ${name}_fake test_${name})
		target_include_directories(${target} PRIVATE "${CEPHFS_INCLUDE_DIR}")
		target_compile_options(${target} PRIVATE
			-Wall -Wextra -Werror -D_GNU_SOURCE ${ARGN})
	endforeach()
endfunction()
