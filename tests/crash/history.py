# SPDX-License-Identifier: LGPL-3.0-or-later
"""Changes that were made one after the other, and what is left of them.

The state of names maps "folder/name" to [type, fileid], or to None where
there is no such name; a fileid of None stands for any.  The state of a file's
attributes maps each to its value.
"""


class History:
    """Changes of one sequence: each was sent when the one before it had its
    answer.  So what survives has to be the first of them, in their order."""

    def __init__(self, start=()):
        self.start = dict(start)
        self.kinds = []             # of those acknowledged
        self.changes = []           # what each of them makes of the state
        self.times = []             # and when it was answered
        self.in_flight = {}         # may have been done

    def sent(self, change):
        self.in_flight = change

    def acknowledged(self, kind, change, when):
        self.in_flight = {}
        self.kinds.append(kind)
        self.changes.append(change)
        self.times.append(when)

    def known(self):
        """All that the state has ever had."""
        known = dict.fromkeys(self.start)
        for change in (*self.changes, self.in_flight):
            known.update(dict.fromkeys(change))
        return list(known)

    def survived(self, found, resent=False):
        """How many of the changes FOUND shows, at most; None if FOUND is not
        what any first ones of them leave.  RESENT: the one in flight was sent
        again after the crash, to whatever was left."""
        state = dict.fromkeys(self.known()) | self.start
        unknown = self.in_flight if resent else {}
        most = 0 if same(state, found, unknown) else None
        for count, change in enumerate((*self.changes, self.in_flight), 1):
            state.update(change)
            if same(state, found, unknown):
                most = count
        return most if most is None else min(most, len(self.changes))


def same(state, found, unknown):
    return all(alike(state[key], found[key]) for key in state
               if key not in unknown)


def alike(wanted, found):
    if not isinstance(wanted, (list, tuple)) or found is None:
        return wanted == found
    return wanted[0] == found[0] and wanted[1] in (None, found[1])
