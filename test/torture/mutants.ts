import { PLACES } from './history.ts';
import type { Op } from './log.ts';
import type { Recording } from './recording.ts';

// Receivers that do something wrong, made of what a right one did. Each has to be found.

export const MUTANTS = {
  'acknowledges before the sync': (recording) => {
    const { ops, said } = recording;
    const journal = syncsOf(ops, (path) => path.startsWith(`${PLACES.journal}/`));
    return {
      ...recording,
      said: said.map((one) => {
        const sync = ops.findLastIndex((_, at) => at < one.at && journal.has(at));
        const { since } = ops[sync] as Op & { kind: 'sync' };
        return { ...one, at: one.acknowledged === null ? one.at : since };
      }),
    };
  },
  'moves cursors before the file is synced': (recording) =>
    without(recording, (path) => path.endsWith('.part')),
  'renames files that are not synced': (recording) =>
    without(recording, (path) => isArchive(path) && path.endsWith('.tmp')),
  'does not sync folders': (recording) =>
    without(recording, (path) => isArchive(path) && !/\.[a-z-]+$/.test(path)),
} as const satisfies Record<string, (recording: Recording) => Recording>;

export type Mutant = keyof typeof MUTANTS;

function without(recording: Recording, isLost: (path: string) => boolean): Recording {
  const lost = syncsOf(recording.ops, isLost);
  const nothing: Op = { kind: 'answer', text: '' };
  return { ...recording, ops: recording.ops.map((op, at) => (lost.has(at) ? nothing : op)) };
}

/** Numbers of the operations that are syncs of these files or folders. */
function syncsOf(ops: readonly Op[], isOne: (path: string) => boolean): Set<number> {
  const open = new Map<number, string>();
  const syncs = new Set<number>();
  for (const [at, op] of ops.entries()) {
    if (op.kind === 'open') open.set(op.fd, op.path);
    else if (op.kind === 'sync' && isOne(open.get(op.fd) ?? '')) syncs.add(at);
  }
  return syncs;
}

function isArchive(path: string): boolean {
  return path.startsWith(`${PLACES.a}/`) || path.startsWith(`${PLACES.b}/`);
}
