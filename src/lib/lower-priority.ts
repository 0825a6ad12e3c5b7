import { constants, getPriority, setPriority } from 'node:os';

/** How much later than the thread that receives others have their turn, where cores are short: they get a tenth of its time. */
const NICER = 10;

/** Has the thread that calls it give way to the one that receives, as far as that is possible. */
export function lowerPriority(): void {
  // Linux alone takes it for this thread and not for the process.
  if (process.platform !== 'linux') return;
  try {
    setPriority(Math.min(constants.priority.PRIORITY_LOW, getPriority() + NICER));
  } catch {
    // Not allowed, as by a unit's SystemCallFilter: then it is one thread among others.
  }
}
