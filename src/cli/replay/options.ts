import { createHmac, hash, randomBytes } from 'node:crypto';
import { join, resolve } from 'node:path';
import type { Config, DescribedConfig } from '../../config/config.ts';
import { missingPlace } from '../../config/rules.ts';
import { isStoreUrl, replaysBeside } from '../../core/place.ts';
import { parseTarget, type Target } from '../../core/route.ts';
import { plainTarget } from '../../replay/destinations.ts';
import { type EventPointers, jsonPointer } from '../../replay/enclosed.ts';
import { pseudonymiserOf } from '../../replay/pseudonymiser.ts';
import type { StoreName } from '../../replay/read-store.ts';
import type { Selection } from '../../replay/selection.ts';
import { usageError, type Io } from '../io.ts';
import { type OptionsOf, readAs, readBy, repeated, SELECTION, textOf, textOr } from '../options.ts';
import { CONFIG } from '../config-options.ts';
import { KEY_OPTIONS } from '../key-options.ts';

export const REPLAY_OPTIONS = {
  '--to <sink>': repeated(
    'send to this sink where the routes do, else to its default destination; sink:destination always there, sink: always to the default',
  ),
  '--routes': 'send by the routes of the config',
  ...SELECTION,
  '--sink <name>': repeated('only events routed to this sink, or refused by it'),
  '--body-at <pointer>': readBy(jsonPointer, 'in files of messages: JSON Pointer to the event'),
  '--id-at <pointer>': readBy(jsonPointer, 'JSON Pointer to its id'),
  '--type-at <pointer>': readBy(jsonPointer, 'JSON Pointer to its type, if the event has none'),
  '--time-at <pointer>': readBy(jsonPointer, 'JSON Pointer to the time of its receipt'),
  '--rate <n/s>': readBy(rate, 'at most this many events a second; also n/m and n/h'),
  '--dry-run': 'count by type and destination, send nothing',
  '--resume': 'continue an interrupted replay',
  '--state <dir>': 'folder of the state (default: replay/<hash of the command> beside the journal)',
  '--id <text>': 'the replay-id of its messages (default: random)',
  '--map-user <from=to>': repeated('give a user another id'),
  '--pseudonymise': 'give every team, user and client user a pseudonym',
  '--key-env <name>': textOr('MILLRACE_PSEUDONYM_KEY', 'variable with the secret key of the pseudonyms'),
  '--key-file <file>': 'file with that key',
  '--no-yield': 'do not wait for live traffic',
  ...CONFIG,
  '--json': 'print one JSON object as the last line; on stderr where events go to stdout',
  ...KEY_OPTIONS,
};

export type ReplayFlags = OptionsOf<typeof REPLAY_OPTIONS>;

/** The checked options of a replay. */
export type ReplayOrder = Readonly<ReturnType<typeof replayOrder>>;

type Input =
  { readonly kind: 'path'; readonly path: string } | { readonly kind: 'store'; readonly name: StoreName };

const STORES: ReadonlySet<string> = new Set<StoreName>(['journal', 'quarantine', 'dead-letters']);
const SHORTEST_KEY = 16;

/** @throws MillraceError usage, naming the flag */
export function replayOrder(given: readonly string[], flags: ReplayFlags, config: DescribedConfig, io: Io) {
  const inputs = given.map(inputOf);
  const selection: Selection = {
    types: flags.type,
    teams: flags.team,
    users: flags.user,
    since: flags.since ?? null,
    until: flags.until ?? null,
  };
  const pointers = pointersOf(flags);
  const to = targetsOf(flags, config);
  const sinks = flags.sink;
  for (const name of sinks) requireSink('--sink', name, config);
  const users = new Map(flags.mapUser.map(userPair));
  const key = flags.pseudonymise === true ? keyOf(flags, io) : null;
  // Shows whether the key is the same, without storing it.
  const keyCheck =
    key === null ? null : createHmac('sha256', key).update('replay').digest('hex').slice(0, 16);
  const fingerprint = hash(
    'sha256',
    JSON.stringify([inputs, selection, to, sinks, [...users], keyCheck, ...(pointers ? [pointers] : [])]),
    'hex',
  );
  const beside = replaysBeside(config.journal.path);
  const folder = join(beside, fingerprint.slice(0, 12));
  return {
    inputs,
    selection,
    /** Undefined: a document is an event. */
    pointers,
    /** Null: by the routes. */
    to,
    sinks,
    /** Events a second; null without a limit. */
    rate: flags.rate ?? null,
    pseudonymiser: pseudonymiserOf({ users, key, fields: config.envelope }),
    id: flags.id ?? `replay-${randomBytes(9).toString('base64url')}`,
    /** Folder of the state. */
    state: resolve(flags.state ?? folder),
    /**
     * Folder of notes about finished replays; null for a replay that is not noted: a stored hash of a user's id would confirm a
     * guess of the id after an erasure.
     */
    finishedIn: users.size === 0 && selection.users.length === 0 ? beside : null,
    /** Equal for commands that select the same events for the same targets. */
    fingerprint,
  };
}

function inputOf(text: string): Input {
  return STORES.has(text)
    ? { kind: 'store', name: text as StoreName }
    : { kind: 'path', path: isStoreUrl(text) ? text : resolve(text) };
}

function pointersOf({ bodyAt, idAt, typeAt, timeAt }: ReplayFlags): EventPointers | undefined {
  const given = { id: idAt ?? null, type: typeAt ?? null, time: timeAt ?? null };
  const isGiven = bodyAt !== undefined || Object.values(given).some((pointer) => pointer !== null);
  return isGiven ? { body: bodyAt ?? '', ...given } : undefined;
}

function targetsOf({ to, routes, dryRun }: ReplayFlags, config: DescribedConfig): readonly Target[] | null {
  if (to.length > 0 && routes === true) throw usageError('give --to or --routes, not both');
  if (to.length === 0) {
    if (routes !== true && dryRun !== true)
      throw usageError('name a target: --to SINK, or --routes to follow the routes');
    return null;
  }
  const targets = to.map(parseTarget);
  for (const target of targets) {
    requireSink('--to', target.sink, config);
    const isRouted = config.routes.some((route) => route.to.some(({ sink }) => sink === target.sink));
    if (target.destination === null && isRouted) continue;
    const wrong = missingPlace(plainTarget(target), config.sinks[target.sink]?.description);
    if (wrong !== null) throw usageError(`--to: ${wrong}`);
  }
  return targets;
}

function requireSink(flag: string, name: string, { sinks }: Config): void {
  if (sinks[name] !== undefined) return;
  throw usageError(`${flag} ${name}: the config has the sinks ${Object.keys(sinks).join(', ')}`);
}

const PER: Readonly<Record<string, number>> = { s: 1, m: 60, h: 3600 };

/** Events a second of `500/s`, `3000/m` or `100/h`. */
function rate(text: string): number {
  const [, count = '', unit = 's'] = /^(\d+(?:\.\d+)?)(?:\/([smh]))?$/.exec(text) ?? [];
  const perSecond = Number(count) / (PER[unit] ?? 1);
  if (perSecond > 0) return perSecond;
  throw new RangeError('must be like 500/s, 3000/m or 100/h');
}

function userPair(text: string): [from: string, to: string] {
  const at = text.indexOf('=');
  if (at < 1 || at === text.length - 1) throw usageError('--map-user: write it as FROM=TO, two user ids');
  return [text.slice(0, at), text.slice(at + 1)];
}

function keyOf({ keyEnv, keyFile }: ReplayFlags, io: Io): Buffer {
  const from = keyFile === undefined ? `--key-env ${keyEnv}` : `--key-file ${keyFile}`;
  const text =
    keyFile === undefined ? (io.env[keyEnv] ?? '') : readAs('--key-file', keyFile, textOf).trimEnd();
  const key = Buffer.from(text);
  if (key.length >= SHORTEST_KEY) return key;
  const lack = key.length === 0 ? 'not set' : `shorter than ${SHORTEST_KEY} bytes`;
  throw usageError(`--pseudonymise needs a key, and ${from} is ${lack}`);
}
