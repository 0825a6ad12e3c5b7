import { dirname, join, resolve } from 'node:path';
import { messageOf } from '../../core/errors.ts';
import type { SinkDescription, SinkLog } from '../../core/sink.ts';
import { replaysBeside, spoolBeside } from '../../core/spool.ts';
import { namesIn } from '../../lib/durable.ts';
import { realPath } from '../../lib/real-path.ts';
import { walkFolder } from '../../lib/walk-folder.ts';
import { kindOf } from './file-kinds.ts';

/** A folder in a spool is named by a hash of its store's URL. */
const SPOOL = /^[0-9a-f]{12}$/;

/** Of a command, by its hash; of one that was asked for in the console, by its name. */
const REPLAY = /^([0-9a-f]{12}|console-[\w-]{12})$/;

/** The part of a config that says where spools are. */
export interface Spooling {
  readonly journal: { readonly path: string };
  readonly sinks: Readonly<Record<string, { readonly description: SinkDescription }>>;
}

/**
 * Spools of stores that no sink of the config sends to any more: the path was changed, or the sink removed. They lie beside the
 * journal and beside the spools of today.
 */
export function leftSpools({ journal, sinks }: Spooling): string[] {
  const owned = new Set<string>();
  const parents = new Map([[resolve(spoolBeside(journal.path)), spoolBeside(journal.path)]]);
  for (const { description } of Object.values(sinks)) {
    for (const { path, isSpool } of description.folders ?? []) {
      owned.add(resolve(path));
      if (isSpool === true) parents.set(resolve(dirname(path)), dirname(path));
    }
  }
  const left: string[] = [];
  for (const parent of parents.values())
    for (const name of namesIn(parent))
      if (SPOOL.test(name) && !owned.has(resolve(parent, name))) left.push(join(parent, name));
  return left;
}

/** What replays have left beside the journal: how far they are, and why a sink has refused events. */
export function leftReplays({ journal }: Pick<Spooling, 'journal'>): string[] {
  const parent = replaysBeside(journal.path);
  return namesIn(parent)
    .filter((name) => REPLAY.test(name))
    .map((name) => join(parent, name));
}

/**
 * To be told at start: nothing will ever send what lies there, and it holds data of users.
 * @param noted tells the spools whose stores are known: what lies in them is finished there
 */
export async function warnOfLeftSpools(
  config: Spooling,
  noted: () => Promise<readonly string[]>,
  log: SinkLog,
): Promise<void> {
  try {
    const known = new Set(await noted());
    for (const folder of leftSpools(config)) {
      if (known.has(realPath(folder))) continue;
      const files = (await walkFolder(folder)).files.filter((file) => kindOf(file) === 'lines').length;
      const said =
        'no sink of this config sends what lies in this spool; unless another installation does, give a sink the path back that it had, or remove the folder';
      if (files > 0) log.warn({ folder, files }, said);
    }
  } catch (error) {
    log.warn({ error: messageOf(error) }, 'cannot look for spools of earlier configs');
  }
}
