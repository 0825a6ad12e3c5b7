import { matches } from '../../core/route.ts';
import { isUtf8 } from 'node:buffer';
import type { Envelope } from '../../core/event.ts';
import type { InvalidReason } from '../../core/ingest.ts';
import { UUID } from '../../lib/uuid.ts';
import { Scanner } from './scan.ts';

/** Why an authentic event is invalid; the codes are in quarantine, in answers and in metrics. */
const INVALID = {
  empty: 'the body is empty',
  not_utf8: 'the body is not UTF-8',
  bom: 'the body starts with a byte order mark',
  too_deep: 'the body is nested too deeply',
  not_json: 'the body is not JSON',
  not_object: 'the body is JSON but not an object',
  type_missing: 'the event type is missing',
  type_malformed: 'the event type is not a string of 1 to 256 characters without control characters',
  team_missing: 'the team id is missing',
  team_malformed: 'the team id is not well-formed',
  team_foreign: 'the team id is not in the list of allowed teams',
  user_missing: 'the user id is missing',
  user_malformed: 'the user id is not well-formed',
  client_user_missing: 'the client user id is missing',
  client_user_malformed: 'the client user id is not null or text of at most 512 characters',
} as const satisfies Record<string, string>;

export type InvalidCode = keyof typeof INVALID;

export const INVALID_CODES: readonly string[] = Object.keys(INVALID);

type RequiredField = 'team' | 'user' | 'clientUser';

/** Event type prefixes (or `*`), and the fields that events of these types must have. The first rule that matches decides. */
interface RequireRule {
  readonly match: readonly string[];
  readonly fields: readonly RequiredField[];
}

/** Names of the top-level keys of the envelope. */
type EnvelopeFields = Readonly<Record<keyof Envelope, string>>;

/** `envelope` of a config. */
export interface EnvelopeOptions extends EnvelopeFields {
  /** Accepted team ids; empty for all. */
  readonly teams: readonly string[];
  /** Format of team and user ids: `uuid`, or any text of 1 to 256 characters. */
  readonly userIds: 'uuid' | 'text';
  readonly require: readonly RequireRule[];
  /** Deepest nesting of a body. */
  readonly maxDepth: number;
}

export const DEFAULT_FIELDS: EnvelopeFields = {
  type: 'event_type',
  team: 'team_id',
  user: 'user_id',
  clientUser: 'client_user_id',
};

export type Validation =
  | { readonly isValid: true; readonly envelope: Envelope }
  /** The envelope has what could be read; its type can be `''`. */
  | {
      readonly isValid: false;
      readonly envelope: Envelope;
      readonly reasons: readonly [InvalidReason, ...InvalidReason[]];
    };

/** @param known fields from outside the body, for keys that the body lacks */
export type Validator = (body: Buffer, known?: Partial<Envelope>) => Validation;

/** The envelope as it is in the body; undefined for a missing key. */
type Parts = Readonly<Record<keyof Envelope, unknown>>;
type Refuse = (code: InvalidCode) => void;

// oxlint-disable-next-line no-control-regex -- control characters are what it looks for
const CONTROL = /[\u0000-\u001f\u007f-\u009f]/;
const MAX_TYPE = 256;
const MAX_ID = 256;
const MAX_CLIENT_USER = 512;

/** Makes the check of authentic bodies. It does not change the body. */
export function createValidator(options: EnvelopeOptions): Validator {
  const { userIds, require } = options;
  const names = [options.type, options.team, options.user, options.clientUser];
  const scanner = new Scanner(names, options.maxDepth);
  const isId = userIds === 'uuid' ? isUuid : isTextId;
  // UUIDs are equal in upper and lower case; other ids are not.
  const canonical = (id: string): string => (userIds === 'uuid' ? id.toLowerCase() : id);
  const teams = options.teams.length === 0 ? null : new Set(options.teams.map(canonical));

  const check = ({ type, team, user, clientUser }: Parts, refuse: Refuse): void => {
    if (type === undefined || type === null) refuse('type_missing');
    else if (!isType(type)) refuse('type_malformed');
    const needs = requiredBy(require, typeof type === 'string' ? type : '');

    if (team === undefined || team === null) {
      if (needs.includes('team')) refuse('team_missing');
    } else if (!isId(team)) refuse('team_malformed');
    else if (teams !== null && !teams.has(canonical(team))) refuse('team_foreign');

    if (user === undefined || user === null) {
      if (needs.includes('user')) refuse('user_missing');
    } else if (!isId(user)) refuse('user_malformed');

    if (clientUser === undefined) {
      if (needs.includes('clientUser')) refuse('client_user_missing');
    } else if (clientUser !== null && !isText(clientUser, MAX_CLIENT_USER)) refuse('client_user_malformed');
  };

  return (body, known) => {
    const reasons: InvalidReason[] = [];
    // An unreadable body has no other reason: its fields are not known.
    let envelope = UNKNOWN;
    const refuse: Refuse = (code) => {
      reasons.push({ code, detail: INVALID[code] });
    };
    if (read(body, scanner, refuse)) {
      const part = (name: keyof Envelope): unknown => {
        const value = scanner.value(options[name]);
        return value === undefined ? known?.[name] : value;
      };
      const parts = {
        type: part('type'),
        team: part('team'),
        user: part('user'),
        clientUser: part('clientUser'),
      };
      check(parts, refuse);
      envelope = envelopeOf(parts);
    }
    const [first, ...more] = reasons;
    return first === undefined
      ? { isValid: true, envelope }
      : { isValid: false, envelope, reasons: [first, ...more] };
  };
}

/** @returns whether the body has fields: an invalid one can have some */
function read(body: Buffer, scanner: Scanner, refuse: Refuse): boolean {
  if (body.length === 0) {
    refuse('empty');
    return false;
  }
  const isWhole = isUtf8(body);
  if (!isWhole) refuse('not_utf8');
  const marked = body[0] === 0xef && body[1] === 0xbb && body[2] === 0xbf;
  if (marked) refuse('bom');
  const text = marked ? body.subarray(3) : body;
  const verdict = scanner.scan(isWhole ? text : Buffer.from(text.toString()));
  if (verdict !== 'object') refuse(verdict);
  return verdict === 'object';
}

function requiredBy(rules: readonly RequireRule[], type: string): readonly RequiredField[] {
  return rules.find(({ match }) => match.some((prefix) => matches(prefix, type)))?.fields ?? [];
}

const UNKNOWN: Envelope = { type: '', team: null, user: null, clientUser: null };

/** Leaves out a value that is no string, is too long, or cannot be UTF-8. */
function envelopeOf({ type, team, user, clientUser }: Parts): Envelope {
  return {
    type: isType(type) ? type : '',
    team: textOrNull(team),
    user: textOrNull(user),
    clientUser: textOrNull(clientUser),
  };
}

function textOrNull(value: unknown): string | null {
  return isText(value, MAX_CLIENT_USER) ? value : null;
}

/** A text with a lone surrogate is refused: as a message property it would become another text. */
function isText(value: unknown, max: number): value is string {
  return typeof value === 'string' && value.length <= max && value.isWellFormed();
}

function isType(value: unknown): value is string {
  return value !== '' && isText(value, MAX_TYPE) && !CONTROL.test(value);
}

function isTextId(value: unknown): value is string {
  return value !== '' && isText(value, MAX_ID);
}

function isUuid(value: unknown): value is string {
  return typeof value === 'string' && UUID.test(value);
}
