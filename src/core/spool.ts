import { dirname, join } from 'node:path';

/** Where sinks that send to a store gather what they send, each in a folder of its own, when the config names no place. */
export function spoolBeside(journal: string): string {
  return join(dirname(journal), 'spool');
}
