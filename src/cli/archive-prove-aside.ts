import { archiveKeyOf, placeKeyOf } from '../config/folders.ts';
import type { LoadedConfig } from '../config/config.ts';
import { MillraceError } from '../core/errors.ts';
import { pagesOf } from '../core/page.ts';
import type { DroppedNote } from '../core/proof.ts';
import type { SetAsideKind } from '../core/receipt.ts';
import { readProof } from '../privacy/proof/open.ts';
import type { LogEntries } from '../privacy/receipts/prove.ts';
import type { ProveReport } from './archive-prove-report.ts';
import { type ConfigFlags, resolvedConfigOf } from './config-options.ts';
import { note, type Io } from './io.ts';
import { withOperations } from './operations.ts';

type Aside = Pick<ProveReport, 'quarantined' | 'dead' | 'dropped' | 'unclear'>;

export const NOTHING_ASIDE: Aside = { quarantined: 0, dead: 0, dropped: 0, unclear: [] };

/** An archive, and the sinks that write it; none where the config has no such archive. */
interface Written {
  /** As `archiveKeyOf` tells it. */
  readonly keys: ReadonlySet<string>;
  /** A former name too. */
  readonly sinks: ReadonlySet<string>;
}

/** @returns what the config has of each archive */
export async function writersOf(paths: readonly string[], flags: ConfigFlags, io: Io): Promise<Written[]> {
  const { config } = await resolvedConfigOf(flags, io);
  return paths.map((path) => {
    const place = placeKeyOf(path);
    const own = Object.entries(config.sinks).filter(
      ([, { description }]) => description.archive !== undefined && placeKeyOf(description.archive) === place,
    );
    const names = own.flatMap(([name, { continues }]) => [name, continues ?? name]);
    if (names.length === 0)
      note(
        io,
        `${path} is no sink's archive in the config: dead letters do not explain what is missing there`,
      );
    const keys = own.flatMap(([, { description }]) => archiveKeyOf(description.archive) ?? []);
    return { keys: new Set(keys), sinks: new Set(names) };
  });
}

/**
 * Why events are in none of the archives: they wait for a person, or a person dropped them. An event in quarantine never got to
 * a sink. A dead letter did not get to one sink, and may have got to all others: it explains only what is missing in that one's archive.
 */
export async function findAside(
  loaded: LoadedConfig,
  archives: readonly Written[],
  entries: LogEntries,
  io: Io,
): Promise<Aside> {
  const waiting = await setAside(loaded, entries, io);
  const notes = readProof(loaded.config)
    .dropped.notes()
    .flatMap(({ entries: some, ...about }) => some.map((entry) => ({ ...about, entry })));
  const account = (from: readonly { readonly entry: string }[]): number =>
    from.filter(({ entry }) => entries.account(Buffer.from(entry, 'base64'))).length;
  const done = notes.filter(({ state }) => state === 'done');
  const quarantined = account(waiting.filter(({ from }) => from === 'quarantine'));
  const fromQuarantine = account(done.filter(({ from }) => from === 'quarantine'));

  const dead = [...waiting, ...done].filter(({ from }) => from === 'dead-letters');
  const letters = Map.groupBy(dead, ({ entry }) => entry);
  const explained = dead.filter(({ entry }) =>
    archives.every((written) => letters.get(entry)?.some((letter) => isMissingIn(written, letter)) === true),
  );
  const waitingDead = account(explained.filter(({ state }) => state === 'waits'));
  const fromDead = account(explained);

  const unclear = [...dead, ...notes].flatMap((one) => {
    const { from, state, entry } = one;
    const mayExplain =
      from === 'quarantine' ? state === 'begun' : archives.some((written) => mayBeMissingIn(written, one));
    if (!mayExplain) return [];
    const bytes = Buffer.from(entry, 'base64');
    const places = entries.openOf(bytes);
    entries.account(bytes);
    return places;
  });
  return { quarantined, dead: waitingDead, dropped: fromQuarantine + fromDead, unclear };
}

type Letter = Pick<DroppedNote, 'sink' | 'archive'>;

/** A name may be another sink's by now; a place stays, whatever its sink is called. */
function isMissingIn(written: Written, { sink, archive }: Letter): boolean {
  if (archive !== undefined) return archive !== null && written.keys.has(archive);
  return sink !== null && written.sinks.has(sink);
}

/** The archive may have been moved since, or its sink may have the name of another. */
function mayBeMissingIn(written: Written, letter: Letter): boolean {
  return isMissingIn(written, letter) || (letter.sink !== null && written.sinks.has(letter.sink));
}

interface Found {
  readonly from: SetAsideKind;
  readonly state: 'waits' | DroppedNote['state'];
  readonly sink: string | null;
  readonly entry: string;
}

/** What the journal has of it. */
async function setAside(loaded: LoadedConfig, entries: LogEntries, io: Io): Promise<Found[]> {
  const found: Found[] = [];
  try {
    await withOperations(loaded, async (operations) => {
      for (const from of ['quarantine', 'dead-letters'] as const)
        for await (const page of pagesOf((part) => operations.listEntries(from, part), {}))
          for (const { sink, entry } of page)
            if (entry !== null && entries.openOf(Buffer.from(entry, 'base64')).length > 0)
              found.push({ from, state: 'waits', sink: sink ?? null, entry });
    });
  } catch (error) {
    // The report names what is missing then, which is more than an error would say.
    if (!(error instanceof MillraceError)) throw error;
    note(io, `${error.detail}: what is in quarantine, or a dead letter, is not found`);
  }
  return found;
}
