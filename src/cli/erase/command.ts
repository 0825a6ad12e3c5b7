import { text } from 'node:stream/consumers';
import type { Command } from 'commander';
import type { ErasureResult, Erasures, Subject } from '../../core/erasure.ts';
import { EXIT } from '../../core/errors.ts';
import { withErasures } from './erasures.ts';
import { eraseVerifyCommand } from './verify.ts';
import { asOwner } from '../as-owner.ts';
import { note, print, printResult, printTable, usageError, type Io } from '../io.ts';
import { CONFIG, resolvedConfigOf } from '../config-options.ts';
import { SERVICE_OPTIONS, withService } from '../service.ts';
import { commandOf, type OptionsOf } from '../options.ts';

const HELP = `
Examples:
  millrace erase 6b0e9a52-0000-4000-8000-0000000000aa
  millrace erase --now --json - < users.txt
  millrace erase --client-user customer-17 --service
  millrace erase --list
  millrace erase --cancel 6b0e9a52-0000-4000-8000-0000000000aa
  millrace erase --run                from a timer, where no receiver runs

Removes a user from the journal, quarantine, dead letters, archives, kept events, tables, spools and the state of replays, also
where sinks and replays of earlier configs wrote (noted in erasure.path/heads) and where backfill, pull and reconcile --fill wrote
with this config (noted in outputs.jsonl in erasure.path). List other folders to search in erasure.folders. An archive or a listed
folder that is missing is waited for: delete its note, or take it out of erasure.folders, if it was deleted permanently. An output
that is missing is named on the receipt until its line is removed. Later events of the user are dropped.

A request is due after erasure.grace (7d). Until then --cancel leaves everything unchanged; after the erasure it only accepts new
events of the user. A running receiver runs due erasures itself. The receipt lists files, counts and hashes, without the id.

A user id removes all events of that user; --client-user selects by the team's own id. Events of other users stay. Events that
name no user are removed when they contain the id: a UUID anywhere, in any case, escaped, in nested JSON, as a URN, in prose, in
UTF-16; another id as a whole JSON text, or in prose when it has six or more characters, a digit or another sign among them, and no spaces. Not found
are ids inside a body that are base64 or percent-encoded, encrypted or compressed, and ids in sealed records that name no user.

Delta Lake tables are rewritten without their older versions. In object stores old versions and soft-deleted copies are removed
too. The receipt names in not_searched what an erasure cannot search or remove: databases, Parquet, file archives (.zip, .tgz),
targets of symbolic links, file names, types and teams in manifests, tables without a user (insurance, parsing jobs), and objects
that a lock or a retention rule keeps. It names in not_reached the sinks whose events are elsewhere: brokers, endpoints, and
modules without a folder. --service also asks the service to delete the user (with --cancel: to undo it).

Exit codes: 0 done, 1 failed, 2 usage or config, 3 something could not be reached (the next run retries it) or not searched (the
receipt lists it).`;

const OPTIONS = {
  '--client-user': 'the ids are client user ids',
  '--team <id>': 'only data of this team',
  '--now': 'erase at once, without the grace period',
  '--cancel': 'cancel the request; after the erasure: accept events of the user again',
  '--list': 'list waiting requests and hashes of erased users',
  '--run': 'run the erasures that are due',
  '--service': 'also ask the service to delete the user (with --cancel: to undo it)',
  ...CONFIG,
  '--json': 'print JSON: requests, or {receipts, left, not_reached, …}',
  ...SERVICE_OPTIONS,
};
type Options = OptionsOf<typeof OPTIONS>;

type Person = Omit<Subject, 'request'>;

export function eraseCommand(io: Io): Command {
  return commandOf('erase', OPTIONS, HELP)
    .description("remove a user's data everywhere, after a grace period, with a receipt")
    .argument('[users...]', 'user ids; - reads them from standard input')
    .addCommand(eraseVerifyCommand(io))
    .action(async (given: string[], options: Options) => {
      const loaded = asOwner(await resolvedConfigOf(options, io));
      const ids = await idsOf(io, given);
      checkUsage(ids, options);
      const subjects = ids.map((id): Person => {
        return { by: options.clientUser === true ? 'client_user' : 'user', id, team: options.team ?? null };
      });
      await withErasures(loaded, io, async (erasures) => {
        if (options.list === true) return list(io, erasures, options);
        const act = options.cancel === true ? cancel : ask;
        for (const subject of subjects) await act(io, erasures, subject, options);
        if (options.now === true || options.run === true) showResult(io, await erasures.run(), options);
      });
    });
}

function checkUsage(ids: readonly string[], options: Options): void {
  const { list: isList, run, cancel: isCancel, now, service, clientUser } = options;
  const verbs = [isList, run, isCancel, now].filter((verb) => verb === true).length;
  if (verbs > 1) throw usageError('name one of --list, --run, --cancel, --now');
  const alone = isList === true || run === true;
  if (alone && ids.length > 0) throw usageError('--list and --run take no user ids');
  if (!alone && ids.length === 0) throw usageError('name a user, or say --list or --run');
  if (service === true && clientUser === true && isCancel !== true)
    throw usageError('--service needs the user id: the service deletes by user id only');
}

async function idsOf(io: Io, given: readonly string[]): Promise<string[]> {
  const ids: string[] = [];
  for (const id of given) ids.push(...(id === '-' ? (await text(io.stdin)).split(/\r?\n/) : [id]));
  return [...new Set(ids.map((id) => id.trim()).filter((id) => id !== ''))];
}

async function ask(io: Io, erasures: Erasures, subject: Person, options: Options): Promise<void> {
  const request = await erasures.request(subject, options.now === true);
  // First our own request: once it is on disk it is carried out, even if the service fails.
  if (options.service === true) await askService(io, options, ({ users }) => users.delete(subject.id));
  if (options.now === true) return;
  const { request: id, due_at } = request;
  const words = `request ${id}: due ${due_at}; until then \`millrace erase --cancel\` cancels it`;
  printResult(io, options, { request: id, due_at }, words);
}

async function cancel(io: Io, erasures: Erasures, subject: Person, options: Options): Promise<void> {
  const result = await erasures.cancel(subject);
  if (options.service === true) {
    const { by, id } = subject;
    await askService(io, options, ({ users }) =>
      users.undoDeletion(by === 'user' ? { userId: id } : { clientUserId: id }),
    );
  }
  printResult(io, options, result, CANCELLED[result.status]);
  if (result.status === 'unknown') io.setExit(EXIT.failed);
}

const CANCELLED = {
  cancelled: 'cancelled: nothing was erased',
  lifted: 'the data is gone; new events of the user are accepted again',
  unknown: 'no such request, and no such erased user',
} as const;

async function list(io: Io, erasures: Erasures, options: Options): Promise<void> {
  const { waiting, erased } = await erasures.list();
  if (options.json === true) return print(io, JSON.stringify({ waiting, erased }));
  if (waiting.length === 0) note(io, 'no request is waiting');
  else {
    const rows = waiting.map(({ request, due_at: due, begun_at: begun, by, id, team }) => {
      return [request, due, begun === null ? 'waiting' : 'begun', by, id, team ?? ''];
    });
    printTable(io, ['REQUEST', 'DUE', 'STATE', 'BY', 'ID', 'TEAM'], rows);
  }
  if (erased.length === 0) return;
  const hashes = erased.map(({ at, by, hash }) => [at, by, hash]);
  printTable(io, ['ERASED', 'BY', 'HASH'], hashes);
}

function showResult(io: Io, result: ErasureResult, options: Options): void {
  const { receipts, left, files_searched: files, bytes_searched: bytes } = result;
  // Equal in all receipts of a run.
  const beyond = receipts[0]?.not_reached ?? [];
  for (const { store, item, requests, reason } of left) {
    const place = item === '' || item === store ? store : `${store} ${item}`;
    note(io, `not ${requests.length === 0 ? 'searched' : 'erased'}: ${place}: ${reason}`);
  }
  if (options.json === true) print(io, JSON.stringify({ ...result, not_reached: beyond }));
  else {
    for (const { receipt, records_removed: records, items, by } of receipts) {
      print(io, `receipt ${receipt}: ${records} records removed from ${items.length} files and tables`);
      if (records === 0) note(io, NOTHING[by]);
    }
    if (beyond.length > 0)
      note(io, `not reached: events already sent to ${beyond.join(', ')}; erase them there`);
    if (receipts.length === 0 && left.length === 0) note(io, 'nothing is due');
    else note(io, `searched ${files} files, ${bytes} bytes`);
  }
  if (left.length > 0) io.setExit(EXIT.partial);
}

const NOTHING = {
  user: "nothing was found by this user id; the team's own ids need --client-user",
  client_user: 'nothing was found by this client user id',
} as const;

async function askService(
  io: Io,
  options: Options,
  work: Parameters<typeof withService<{ readonly success: boolean }>>[2],
): Promise<void> {
  const { success } = await withService(io, options, work);
  note(io, success ? 'the service has accepted it too' : 'the service reports that it failed');
  if (!success) io.setExit(EXIT.partial);
}
