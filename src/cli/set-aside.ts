import type { Command } from 'commander';
import type { Selection } from '../core/journal.ts';
import { pagesOf } from '../core/page.ts';
import type {
  EventSummary,
  Operations,
  RetryResult,
  DeadLetterSummary,
  QuarantineSummary,
} from '../core/operations.ts';

import { print, printList, printResult, usageError, type Io } from './io.ts';
import { withOperations } from './operations.ts';
import { CONFIG, configOf } from './config-options.ts';
import { commandOf, type OptionsOf, type OptionTable, readAs, readBy, wholeNumber } from './options.ts';
import { formatTarget } from '../core/route.ts';

/** The differences between quarantine and dead letters; both have the same four commands. */
interface SetAsideList<Summary extends EventSummary> {
  readonly name: string;
  readonly description: string;
  readonly help: string;
  readonly hasSink: boolean;
  /** Why `retry` keeps some events. */
  readonly keeps: string;
  readonly header: readonly string[];
  row(summary: Summary): readonly string[];
  list(operations: Operations, selection: Selection, bodies: boolean): Promise<readonly Summary[]>;
  retry(operations: Operations, selection: Selection): Promise<RetryResult>;
  drop(operations: Operations, selection: Selection): Promise<number>;
}

const COMMON = { ...CONFIG, '--json': 'print JSON' };
const SINK = { '--sink <name>': 'only those of one sink' };
const LIST = { '--limit <n>': readBy(wholeNumber(), 'show at most this many', '100') };
const ALL = { '--all': 'all of them' };
type Options = OptionsOf<typeof COMMON> & Partial<OptionsOf<typeof SINK & typeof ALL>>;

/** `list`, `show`, `retry` and `drop` for events that wait for a decision. */
function setAsideCommand<Summary extends EventSummary>(io: Io, box: SetAsideList<Summary>): Command {
  const command = commandOf(box.name, {}, box.help).description(box.description);
  const verb = (name: string, description: string, own: OptionTable): Command => {
    const sink = box.hasSink && name !== 'show' ? SINK : {};
    const child = commandOf(name, { ...COMMON, ...sink, ...own }, box.help).description(description);
    command.addCommand(child);
    return child;
  };
  const run = <T>(options: Options, work: (operations: Operations) => Promise<T>): Promise<T> =>
    withOperations(configOf(options, io), work);

  verb('list', 'one line per event, without bodies', LIST).action(
    async (options: Options & OptionsOf<typeof LIST>) => {
      const found = await run(options, (operations) =>
        all((part) => box.list(operations, part, false), { ...sinkOf(options), limit: options.limit }),
      );
      printList(io, options, found, box.header, (summary) => box.row(summary));
    },
  );

  verb('show', 'one complete event, including its body', {})
    .argument('<key>', 'as `list` prints it')
    .action(async (key: string, options: Options) => {
      const keys = [keyOf(key)];
      const [found] = await run(options, (operations) => box.list(operations, { keys }, true));
      if (found === undefined) throw usageError(`${box.name} has no ${key}`);
      const { body_base64: body = '', ...rest } = found;
      print(io, JSON.stringify(options.json === true ? found : rest, null, 2));
      if (options.json !== true) print(io, Buffer.from(body, 'base64').toString('utf8'));
    });

  const change = <T>(
    name: string,
    description: string,
    work: (operations: Operations, selection: Selection) => Promise<T>,
    shown: (result: T) => readonly [found: object, words: string],
  ): Command =>
    verb(name, description, ALL)
      .argument('[keys...]', 'as `list` prints them')
      .action(async (keys: string[], options: Options) => {
        const selection = selectionOf(keys, options);
        const result = await run(options, async (operations) => {
          await requireAll(box, operations, selection);
          return work(operations, selection);
        });
        printResult(io, options, ...shown(result));
      });
  change('retry', 'deliver them again', box.retry, (result) => [
    result,
    `retried ${result.retried}${result.kept === 0 ? '' : `, kept ${result.kept} (${box.keeps})`}`,
  ]);
  change('drop', 'delete them permanently', box.drop, (dropped) => [{ dropped }, `dropped ${dropped}`]);
  return command;
}

/** @throws MillraceError usage for unknown keys, before anything is changed */
async function requireAll<Summary extends EventSummary>(
  box: SetAsideList<Summary>,
  operations: Operations,
  selection: Selection,
): Promise<void> {
  const { keys } = selection;
  if (keys === undefined) return;
  const found = await all((part) => box.list(operations, part, false), selection);
  const missing = keys.filter((key) => !found.some((summary) => summary.key === key));
  if (missing.length > 0) throw usageError(`${box.name} has no ${missing.join(', ')}; nothing was changed`);
}

async function all<Summary extends EventSummary>(
  list: (selection: Selection) => Promise<readonly Summary[]>,
  selection: Selection,
): Promise<Summary[]> {
  return (await Array.fromAsync(pagesOf(list, selection))).flat();
}

/** The named keys; all only with --all or --sink. */
function selectionOf(keys: readonly string[], options: Options): Selection {
  if (keys.length > 0) return { keys: keys.map(keyOf), ...sinkOf(options) };
  if (options.all === true || options.sink !== undefined) return sinkOf(options);
  throw usageError('name the keys, or say --all');
}

function sinkOf({ sink }: Options): Selection {
  return sink === undefined ? {} : { sink };
}

function keyOf(text: string): number {
  return readAs('key', text, wholeNumber());
}

const QUARANTINE_HELP = `
Examples:
  millrace quarantine list
  millrace quarantine show 17
  millrace quarantine retry --all     after a change to envelope.* that makes them valid
  millrace quarantine drop 17 18

Authentic but invalid events are kept here, byte for byte, until someone retries or drops them.`;

export function quarantineCommand(io: Io): Command {
  return setAsideCommand<QuarantineSummary>(io, {
    name: 'quarantine',
    description: 'authentic but invalid events: list, show, retry, drop',
    help: QUARANTINE_HELP,
    hasSink: false,
    keeps: 'still invalid, or id_reused, which has to be named by its key',
    header: ['KEY', 'RECEIVED', 'TYPE', 'BYTES', 'ID', 'REASONS'],
    row: ({ key, received_at, event_type, bytes, id, reasons }) => [
      String(key),
      received_at,
      event_type,
      String(bytes),
      id,
      reasons.map(({ code }) => code).join(' '),
    ],
    list: (operations, selection, bodies) => operations.listQuarantine(selection, bodies),
    retry: (operations, selection) => operations.retryQuarantine(selection),
    drop: (operations, selection) => operations.dropQuarantine(selection),
  });
}

const DEAD_LETTERS_HELP = `
Examples:
  millrace dead-letters list --sink hubs
  millrace dead-letters show 3
  millrace dead-letters retry --all      to the sink that refused them, and no other
  millrace dead-letters drop 3 4`;

export function deadLettersCommand(io: Io): Command {
  return setAsideCommand<DeadLetterSummary>(io, {
    name: 'dead-letters',
    description: 'events that a sink has permanently refused: list, show, retry, drop',
    help: DEAD_LETTERS_HELP,
    hasSink: true,
    keeps: 'of sinks that the config does not have',
    header: ['KEY', 'DIED', 'TARGET', 'TYPE', 'BYTES', 'ID', 'CODE', 'REASON'],
    row: ({ key, died_at, sink, destination, event_type, bytes, id, code, reason }) => [
      String(key),
      died_at,
      formatTarget({ sink, destination }),
      event_type,
      String(bytes),
      id,
      code,
      reason,
    ],
    list: (operations, selection, bodies) => operations.listDeadLetters(selection, bodies),
    retry: (operations, selection) => operations.retryDeadLetters(selection),
    drop: (operations, selection) => operations.dropDeadLetters(selection),
  });
}
