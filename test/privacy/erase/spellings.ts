import { contentsOf, userId } from './support.ts';

/** A body without an envelope of a user, in which an id is written in some way. */
export interface Spelling {
  readonly by: 'user' | 'client_user';
  /** Of user 1 to be erased, of user 2 to stay. */
  readonly id: (user: number) => string;
  readonly write: (id: string, secret: string) => Buffer;
}

const TYPE = 'message.attempt.made_up';
const TEAM = '6b0e9a52-0000-4000-8000-ffffffffffff';

const escapeAll = (text: string): string =>
  Array.from(text, (char) => `\\u${char.charCodeAt(0).toString(16).padStart(4, '0')}`).join('');

/** JSON with the id as it stands in the text, between quotes that are the writer's. */
function raw(text: string): Spelling['write'] {
  return (id, secret) =>
    Buffer.from(
      `{"event_type":"${TYPE}","team_id":"${TEAM}","note":"${secret}","about":${text.replaceAll('ID', id)}}`,
    );
}

const user = (write: Spelling['write']): Spelling => ({ by: 'user', id: userId, write });
const client = (name: string, write: Spelling['write']): Spelling => ({
  by: 'client_user',
  id: (n) => `${name}-${n}`,
  write,
});
const nested = (value: unknown, times: number): string =>
  times === 0 ? JSON.stringify(value) : nested(JSON.stringify(value), times - 1);

export const SPELLINGS: Readonly<Record<string, Spelling>> = {
  'a UUID in upper case': user((id, secret) => raw('"ID"')(id.toUpperCase(), secret)),
  'a UUID with escaped hyphens': user((id, secret) => raw('"ID"')(id.replaceAll('-', '\\u002D'), secret)),
  'a UUID with every character escaped': user((id, secret) => raw('"ID"')(escapeAll(id), secret)),
  'a UUID as a URN': user(raw('"urn:uuid:ID"')),
  'a UUID in braces': user(raw('["{ID}"]')),
  'a UUID without hyphens': user((id, secret) => raw('"ID"')(id.replaceAll('-', ''), secret)),
  'a UUID in prose': user(raw('"seen with ID, late."')),
  'a UUID inside of a word': user(raw('{"https://made.up/x_ID_y?z":1}')),
  'a UUID as a key': user(raw('{"ID":true}')),
  'a UUID in JSON in JSON': user((id, secret) => raw(nested({ user_id: id }, 1))(id, secret)),
  'a UUID in JSON in JSON in JSON': user((id, secret) => raw(nested({ user_id: id }, 3))(id, secret)),
  'an escaped UUID in JSON in JSON': user((id, secret) =>
    raw(JSON.stringify(`{"user_id":"${escapeAll(id)}"}`))(id, secret),
  ),
  'a UUID in text that is no JSON': user((id, secret) => Buffer.from(`${secret} user=${id}`)),
  'a UUID in UTF-16': user((id, secret) => Buffer.from(raw('"ID"')(id, secret).toString(), 'utf16le')),
  'a UUID in UTF-16, the other byte first': user((id, secret) =>
    Buffer.from(`\ufeff${raw('"ID"')(id, secret).toString()}`, 'utf16le').swap16(),
  ),
  'a client user id with an escaped ampersand': client('made & up', (id, secret) =>
    raw('"ID"')(id.replace('&', '\\u0026'), secret),
  ),
  'a client user id with escaped characters in JSON in JSON': client('Mädchen & "up"', (id, secret) =>
    raw(JSON.stringify(`{"x":"${escapeAll(id)}"}`))(id, secret),
  ),
  'a client user id with escaped slashes': client('made/up', (id, secret) =>
    raw('"ID"')(id.replace('/', '\\/'), secret),
  ),
  'a client user id in UTF-16': client('Mädchen', (id, secret) =>
    Buffer.from(raw('"ID"')(id, secret).toString(), 'utf16le'),
  ),
  'a client user id in prose': client('customer', raw('"called ID: no answer"')),
  'a client user id in an address': client('customer', raw('"https://made.up/customers/ID?all"')),
};

/**
 * Which of these texts stand in any file below a folder, written in whatever way. Shares nothing with what is tested: NUL
 * bytes are left out, base64 is decoded where it stands, escapes are taken off until there are none, hyphens and
 * backslashes do not count.
 */
export function standing(folder: string, texts: readonly string[]): string[] {
  const found = new Set<string>();
  for (const [, bytes] of contentsOf([folder])) {
    let text = bytes.toString('latin1');
    text += text.replaceAll(/[A-Za-z0-9+/]{40,}={0,2}/g, (run) =>
      Buffer.from(run, 'base64').toString('latin1'),
    );
    text += Buffer.from(text, 'latin1').toString('utf8');
    text = text.replaceAll('\0', '');
    for (let last = ''; last !== text;) {
      last = text;
      text = text
        .replaceAll(/\\u00([0-9a-f]{2})/gi, (_, hex: string) => String.fromCharCode(Number.parseInt(hex, 16)))
        .replaceAll('\\\\', '\\');
    }
    const hay = simple(text);
    for (const wanted of texts) if (hay.includes(simple(wanted))) found.add(wanted);
  }
  return texts.filter((text) => found.has(text));
}

function simple(text: string): string {
  return text.toLowerCase().replaceAll(/[-\\]/g, '');
}
