import { dirname, join } from 'node:path';

/** Where sinks that send to a store gather what they send, each in a folder of its own, when the config names no place. */
export function spoolBeside(journal: string): string {
  return join(dirname(journal), 'spool');
}

/** Where replays keep how far they are, each in a folder of its own, when the command names no place. */
export function replaysBeside(journal: string): string {
  return join(dirname(journal), 'replay');
}
