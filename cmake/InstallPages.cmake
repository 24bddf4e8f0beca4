# SPDX-License-Identifier: LGPL-3.0-or-later
#
# Runs at installation, with SOURCE and PAGES (folders) set: README.md and what
# is in docs/ as pages of a package, in the order of the source, so that their
# links lead somewhere.  Pictures are as large as all pages, so the source has
# the only copy; of a link to what only the source has, words and path are left.

file(GLOB_RECURSE pages RELATIVE "${SOURCE}" "${SOURCE}/docs/*.md")
foreach(page README.md CHANGELOG.md SECURITY.md ${pages})
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
