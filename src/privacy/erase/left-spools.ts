import { dirname, join, resolve } from 'node:path';
import { messageOf } from '../../core/errors.ts';
import type { SinkDescription, SinkLog } from '../../core/sink.ts';
import { replaysBeside, spoolBeside } from '../../core/place.ts';
import { namesIn } from '../../lib/durable.ts';
import { realPath } from '../../lib/real-path.ts';
import { walkFolder } from '../../lib/walk-folder.ts';
import { kindOf } from './file-kinds.ts';

/** A spool is named by a hash of its store's URL. */
const SPOOL = /^[0-9a-f]{12}$/;

/** A replay of a command is named by its hash, one of the console by its name. */
const REPLAY = /^([0-9a-f]{12}|console-[\w-]{12})$/;

/** The part of a config that says where spools are. */
export interface Spooling {
  readonly journal: { readonly path: string };
  readonly sinks: Readonly<Record<string, { readonly description: SinkDescription }>>;
}

/** Spools, beside the journal and beside the spools of the config, of stores that no sink of the config sends to. */
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

/** Folders beside the journal in which replays note how far they are, and what sinks have refused. */
export function leftReplays({ journal }: Pick<Spooling, 'journal'>): string[] {
  const parent = replaysBeside(journal.path);
  return namesIn(parent)
    .filter((name) => REPLAY.test(name))
    .map((name) => join(parent, name));
}

/**
 * Warns, at the start, of spools with files that no sink will send: they hold data of users.
 * @param noted the spools whose stores are known: they are still sent
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
      const message =
        'no sink of this config sends what lies in this spool; unless another installation does, give a sink the path back that it had, or remove the folder';
      if (files > 0) log.warn({ folder, files }, message);
    }
  } catch (error) {
    log.warn({ error: messageOf(error) }, 'cannot look for spools of earlier configs');
  }
}
