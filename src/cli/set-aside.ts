import type { Command } from 'commander';
import type { Selection } from '../core/journal.ts';
import { pagesOf } from '../core/page.ts';
import type { DeadLetterSummary, EventSummary, Operations, QuarantineSummary } from '../core/operations.ts';
import type { SetAsideKind } from '../core/receipt.ts';
import { formatTarget } from '../core/route.ts';
import { SET_ASIDE } from '../observe/admin/audit.ts';
import { CONFIG, runningConfigOf } from './config-options.ts';
import { print, printList, printResult, usageError, type Io } from './io.ts';
import { withOperations } from './operations.ts';
import { commandOf, type OptionsOf, type OptionTable, readAs, readBy, wholeNumber } from './options.ts';

/** The differences between quarantine and dead letters; both have the same four commands. */
interface SetAsideList<Summary extends EventSummary> {
  readonly kind: SetAsideKind;
  readonly description: string;
  readonly help: string;
  /** Why `retry` keeps some events. */
  readonly keeps: string;
  readonly header: readonly string[];
  row(summary: Summary): readonly string[];
  list(operations: Operations, selection: Selection, bodies: boolean): Promise<readonly Summary[]>;
}

const COMMON = { ...CONFIG, '--json': 'print JSON' };
const SINK = { '--sink <name>': 'only those of one sink' };
const LIST = { '--limit <n>': readBy(wholeNumber(), 'show at most this many', '100') };
const ALL = { '--all': 'all of them' };
type Options = OptionsOf<typeof COMMON> & Partial<OptionsOf<typeof SINK & typeof ALL>>;

/** `list`, `show`, `retry` and `drop` for events that wait for a decision. */
function setAsideCommand<Summary extends EventSummary>(io: Io, about: SetAsideList<Summary>): Command {
  const { kind, description, help, keeps, header, row, list } = about;
  const command = commandOf(kind, {}, help).description(description);
  const addCommand = (name: string, what: string, own: OptionTable): Command => {
    const sink = kind === 'dead-letters' && name !== 'show' ? SINK : {};
    const child = commandOf(name, { ...COMMON, ...sink, ...own }, help).description(what);
    command.addCommand(child);
    return child;
  };
  const run = <T>(options: Options, work: (operations: Operations) => Promise<T>): Promise<T> =>
    withOperations(runningConfigOf(options, io), work);
  const listAll = async (operations: Operations, selection: Selection): Promise<Summary[]> => {
    const pages = pagesOf((part: Selection) => list(operations, part, false), selection);
    return (await Array.fromAsync(pages)).flat();
  };

  addCommand('list', 'one line per event, without bodies', LIST).action(
    async (options: Options & OptionsOf<typeof LIST>) => {
      const selection = { ...sinkOf(options), limit: options.limit };
      const found = await run(options, (operations) => listAll(operations, selection));
      printList(io, options, found, header, row);
    },
  );

  addCommand('show', 'one complete event, including its body', {})
    .argument('<key>', 'as `list` prints it')
    .action(async (key: string, options: Options) => {
      const keys = [keyOf(key)];
      const [found] = await run(options, (operations) => list(operations, { keys }, true));
      if (found === undefined) throw usageError(`${kind} has no event with the key ${key}`);
      const { body_base64: body = '', ...rest } = found;
      print(io, JSON.stringify(options.json === true ? found : rest, null, 2));
      if (options.json !== true) print(io, Buffer.from(body, 'base64').toString('utf8'));
    });

  /** Runs `work` on the selected events; with an unknown key nothing is changed. */
  const change = <T>(
    options: Options,
    keys: readonly string[],
    work: (operations: Operations, selection: Selection) => Promise<T>,
  ): Promise<T> => {
    const selection = selectionOf(keys, options);
    return run(options, async (operations) => {
      const found = selection.keys === undefined ? [] : await listAll(operations, selection);
      const missing = selection.keys?.filter((key) => !found.some((summary) => summary.key === key)) ?? [];
      if (missing.length > 0) throw usageError(`${kind} has no ${missing.join(', ')}; nothing was changed`);
      return work(operations, selection);
    });
  };

  addCommand('retry', 'deliver them again', ALL)
    .argument('[keys...]', 'as `list` prints them')
    .action(async (keys: string[], options: Options) => {
      const result = await change(options, keys, (operations, selection) =>
        operations[SET_ASIDE[kind].retry](selection),
      );
      const kept = result.kept === 0 ? '' : `, kept ${result.kept} (${keeps})`;
      printResult(io, options, result, `retried ${result.retried}${kept}`);
    });

  addCommand('drop', 'delete them permanently', ALL)
    .argument('[keys...]', 'as `list` prints them')
    .action(async (keys: string[], options: Options) => {
      const dropped = await change(options, keys, (operations, selection) =>
        operations[SET_ASIDE[kind].drop](selection),
      );
      printResult(io, options, { dropped }, `dropped ${dropped}`);
    });
  return command;
}

/** The named keys; all only with --all or --sink. */
function selectionOf(keys: readonly string[], options: Options): Selection {
  if (keys.length > 0) return { keys: keys.map(keyOf), ...sinkOf(options) };
  if (options.all === true || options.sink !== undefined) return sinkOf(options);
  throw usageError('name the keys, or add --all');
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
    kind: 'quarantine',
    description: 'authentic but invalid events: list, show, retry, drop',
    help: QUARANTINE_HELP,
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
    kind: 'dead-letters',
    description: 'events that a sink has permanently refused: list, show, retry, drop',
    help: DEAD_LETTERS_HELP,
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
  });
}
