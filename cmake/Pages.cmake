# SPDX-License-Identifier: LGPL-3.0-or-later
#
# Makes the pages of a package, in the folder PAGES: README.md and what is in
# docs/, in the order of the source, so that their links lead somewhere.  Pictures
# are as large as all pages, so the source has the only copy; of a link to what
# only the source has, words and path are left.

set(PAGES "${CMAKE_CURRENT_BINARY_DIR}/pages")
file(GLOB_RECURSE pages RELATIVE "${CMAKE_CURRENT_SOURCE_DIR}"
	"${CMAKE_CURRENT_SOURCE_DIR}/docs/*.md")
list(PREPEND pages README.md CHANGELOG.md SECURITY.md)
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${pages})
foreach(page ${pages})
	file(READ "${CMAKE_CURRENT_SOURCE_DIR}/${page}" text)
	string(REGEX REPLACE "!\\[([^]]*)\\]\\(([^)]*)\\)"
		"(A picture of the source, \\2: \\1.)" text "${text}")
	foreach(path "(\\.\\./)*((tests|results|FSAL_CEPH_ASYNC)/[^)#]*)[^)]*"
			"(\\.\\./)*(CONTRIBUTING.md)[^)]*" "()([a-z-]+\\.svg)")
		string(REGEX REPLACE "\\[([^]]*)\\]\\(${path}\\)"
			"\\1 (source: \\3)" text "${text}")
	endforeach()
	file(WRITE "${PAGES}/${page}" "${text}")
endforeach()
