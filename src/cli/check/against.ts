import { resolve } from 'node:path';
import { Places } from '../../archive/places.ts';
import { readArchive } from '../../archive/read.ts';
import type { Config, LoadedConfig } from '../../config/config.ts';
import { EXIT, MillraceError } from '../../core/errors.ts';
import { createValidator } from '../../validate/envelope.ts';
import { Comparison, fatesBy, QUARANTINED, type Fate } from '../../route/compare.ts';
import { compileRoutes } from '../../route/table.ts';
import { differingSinks, type AgainstReport } from './against-report.ts';
import { note, type Io } from '../io.ts';
import { openerOf } from '../key-options.ts';
import { openOperations } from '../operations.ts';
import { placed } from '../file-reports.ts';
import { StatusLine } from '../status-line.ts';
import { configIfAny, withRedactions } from '../config-options.ts';

/** An event of the past, as far as a config decides about it. */
interface PastEvent {
  readonly id: string;
  readonly type: string;
  readonly body: Buffer;
}

const PROGRESS_EVERY = 100_000;
/** Problems named on stderr; the rest are counted. */
const NAMED = 10;

/**
 * Sends the events of an archive, or of the journal, through two configs, and counts where they part. Nothing is sent,
 * opened or changed; a journal is only read.
 * @param against a path, or `journal`
 * @param current null when there is nothing to compare with: then the counts say where the events would go
 * @throws MillraceError archive_unreadable, journal_missing, journal_in_use, receiver_unreachable
 */
export async function checkAgainst(
  io: Io,
  against: string,
  next: LoadedConfig,
  current: LoadedConfig | null,
): Promise<AgainstReport> {
  const before = current ?? next;
  // Events that were accepted under an envelope section are judged by it again only if the other one may differ.
  const [was, is] = [before, next].map(({ config }) => JSON.stringify(config.envelope));
  const judge = current === null || was !== is;
  const [then, now] = [fateUnder(before.config, judge), fateUnder(next.config, judge)];
  const comparison = new Comparison();
  const name = new StatusLine(io).atMost(NAMED);
  let unreadable = 0;
  const onProblem = (where: string): void => {
    unreadable += 1;
    name(`warning: ${where}`);
  };
  const events =
    against === 'journal' ? journalEvents(before) : archiveEvents(against, before, onProblem, io);
  try {
    for await (const event of events) {
      io.signal.throwIfAborted();
      comparison.add(event, then(event), now(event));
      if (comparison.events % PROGRESS_EVERY === 0) note(io, `${comparison.events} events read`);
    }
  } catch (error) {
    if (!io.signal.aborted) throw error;
    throw new MillraceError('interrupted', `after ${comparison.events} events`, { cause: error });
  }
  if (unreadable > 0) io.setExit(EXIT.partial);
  return {
    against,
    current: current?.file ?? null,
    next: next.file,
    events: comparison.events,
    unreadable,
    changed: comparison.changed,
    moves: comparison.moves(),
    targets: comparison.targets(),
    sinks: differingSinks(before.config, next.config),
  };
}

/**
 * The config to compare with: the one named, else the one that is in force by its place. Null when that is the new one
 * itself, or there is none.
 */
export async function currentConfig(
  io: Io,
  named: string | undefined,
  next: LoadedConfig,
): Promise<LoadedConfig | null> {
  const current = configIfAny({ config: named }, io);
  if (current === null || resolve(current.file) === resolve(next.file)) return null;
  return withRedactions(current, io);
}

function fateUnder(config: Config, judge: boolean): (event: PastEvent) => Fate {
  const fateOf = fatesBy(compileRoutes(config.routes));
  if (!judge) return ({ type }) => fateOf(type);
  const validate = createValidator(config.envelope);
  return ({ body }) => {
    const verdict = validate(body);
    return verdict.fit ? fateOf(verdict.envelope.type) : QUARANTINED;
  };
}

async function* archiveEvents(
  path: string,
  { file, config }: LoadedConfig,
  onProblem: (where: string) => void,
  io: Io,
): AsyncGenerator<PastEvent> {
  const opener = await openerOf({ config: file }, io, 'nothing');
  const places = new Places(config.storage);
  try {
    for await (const item of readArchive(path, { places, parts: true, signal: io.signal, opener })) {
      if (item.kind === 'problem') onProblem(`${placed(item.file, item.line)}: ${item.reason}`);
      else yield { id: item.record.id, type: item.record.event_type, body: item.body };
    }
  } finally {
    await places.close();
  }
}

/** What the journal holds now, through the receiver if one runs. What comes later is no part of it. */
async function* journalEvents(loaded: LoadedConfig): AsyncGenerator<PastEvent> {
  const { operations, close } = await openOperations(loaded);
  try {
    const { firstSeq, lastSeq } = (await operations.status()).journal;
    for (let after = firstSeq - 1; after < lastSeq;) {
      const page = await operations.listEvents({ after });
      for (const { key, id, event_type: type, body_base64: body = '' } of page) {
        // What an erasure has left of an event has no id.
        if (key <= lastSeq && id !== '') yield { id, type, body: Buffer.from(body, 'base64') };
      }
      after = page.at(-1)?.key ?? lastSeq;
    }
  } finally {
    await close();
  }
}
