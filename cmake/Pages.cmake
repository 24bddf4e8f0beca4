# SPDX-License-Identifier: LGPL-3.0-or-later
#
# Makes the pages of a package from SOURCE, in the folder PAGES, when it is
# installed, so that a change of a page builds nothing: README.md and what is in
# docs/, in the order of the source, so that their links lead somewhere.  Pictures
# are as large as all pages, so the source has the only copy; of a link to what
# only the source has, words and path are left.

file(GLOB_RECURSE pages RELATIVE "${SOURCE}" "${SOURCE}/docs/*.md")
list(PREPEND pages README.md CHANGELOG.md SECURITY.md)
file(REMOVE_RECURSE "${PAGES}")
foreach(page ${pages})
	file(READ "${SOURCE}/${page}" text)
	string(REGEX REPLACE "!\\[([^]]*)\\]\\(([^)]*)\\)"
		"(A picture of the source, \\2: \\1.)" text "${text}")
	foreach(path "(\\.\\./)*((tests|results|FSAL_CEPH_ASYNC)/[^)#]*)[^)]*"
			"(\\.\\./)*(CONTRIBUTING.md)[^)]*" "()([a-z-]+\\.svg)")
		string(REGEX REPLACE "\\[([^]]*)\\]\\(${path}\\)"
			"\\1 (source: \\3)" text "${text}")
	endforeach()
	file(WRITE "${PAGES}/${page}" "${text}")
endforeach()
