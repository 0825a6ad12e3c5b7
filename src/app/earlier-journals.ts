import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { messageOf, MillraceError } from '../core/errors.ts';
import { countAllWaiting } from '../deliver/waiting.ts';
import { DATABASE, isLocal } from '../journal/owner.ts';
import type { Repair } from '../journal/mend.ts';
import { hasJournalFiles } from '../journal/second-note.ts';
import { SqliteJournal } from '../journal/sqlite-journal.ts';
import { makeFolder, OWNER_ONLY, readIfThere } from '../lib/durable.ts';
import { writeDurably } from '../lib/new-file.ts';
import { realPath } from '../lib/real-path.ts';
import type { Base } from './system.ts';

/** In the erasure folder, which does not move with the journal: `{"journals":[<path>]}`. */
const FILE = 'journals.json';

/**
 * Refuses to start while events wait in a journal of an earlier config, which nothing would deliver.
 * @returns notes the journal of this start, to be called once it is open
 * @throws MillraceError journal_waited_for, erasure_unreadable, or why an earlier journal cannot be opened
 */
export async function checkEarlierJournals(
  base: Pick<Base, 'config' | 'clock' | 'log'>,
): Promise<() => Promise<void>> {
  const { config, log } = base;
  const own = isLocal(config) ? realPath(config.journal.path) : null;
  const before = noted(config.erasure.path).map(realPath);
  const still = own === null ? [] : [own];
  for (const path of new Set([...before, realPath(config.journal.path)])) {
    if (path === own) continue;
    if (existsSync(join(path, DATABASE)) || hasJournalFiles(path)) {
      if ((await refuseWaiting(path, base)) === 'in use') still.push(path);
    } else if (before.includes(path))
      log.error(
        { journal: path },
        'the journal of an earlier start is gone: if it was not moved, what waited in it is lost',
      );
  }
  return async () => {
    if (still.toSorted().join('\n') === before.toSorted().join('\n')) return;
    await note(config.erasure.path, still).catch((error: unknown) => {
      const message = 'journal.path cannot be noted: a later change of it will not be noticed';
      log.warn({ folder: config.erasure.path, error: messageOf(error) }, message);
    });
  };
}

async function refuseWaiting(
  path: string,
  { config, clock, log }: Pick<Base, 'config' | 'clock' | 'log'>,
): Promise<'nothing waits' | 'in use'> {
  const { retention, maxBytes, dedupWindow } = config.journal;
  const settings = { path, retention, maxBytes, dedupWindow, clock, create: false, maintained: false };
  const onRepair = (repair: Repair): void =>
    log.error({ journal: path, ...repair }, 'an earlier journal was damaged');
  const journal = await SqliteJournal.open({ ...settings, onRepair, onFailure: () => undefined }).catch(
    (error: unknown) => {
      // Another receiver delivers it.
      if (error instanceof MillraceError && error.code === 'journal_in_use') return null;
      throw error;
    },
  );
  if (journal === null) return 'in use';
  try {
    const waiting = Array.from(await countAllWaiting(journal), ([sink, events]) => `${events} for ${sink}`);
    if (waiting.length === 0) return 'nothing waits';
    throw new MillraceError(
      'journal_waited_for',
      `journal.path, acknowledge: events wait in ${path} (${waiting.join(', ')}), where this config does not look. ` +
        `Deliver them (millrace drain --journal ${path}), or restore the earlier journal.path and acknowledge`,
    );
  } finally {
    await journal.close();
  }
}

function noted(folder: string): readonly string[] {
  const file = join(folder, FILE);
  try {
    const { journals } = JSON.parse(readIfThere(file) ?? '{"journals":[]}') as { journals: string[] };
    return journals.map(String);
  } catch (error) {
    throw new MillraceError('erasure_unreadable', `${file}: ${messageOf(error)}`, { cause: error });
  }
}

async function note(folder: string, journals: readonly string[]): Promise<void> {
  makeFolder(folder, 0o700);
  await writeDurably(folder, FILE, `${JSON.stringify({ journals })}\n`, OWNER_ONLY);
}
