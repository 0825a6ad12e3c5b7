import { isMapping, keyOf, type Mapping, type Path } from './paths.ts';
import { scalarAt } from './keys.ts';

const REDACTED = '[redacted]';

/** Words that make the name of a sink's option a secret: `apiKey`, `client_secret`, `sasToken`. */
const SECRET_WORD =
  /^(auth|authorization|bearer|cookie|credentials?|keys?|passphrase|passwd|password|pwd|sas|secrets?|signature|tokens?)$/;

/** Names that hold a secret although none of their words is one; compared without dashes, underscores and case. */
const SECRET_NAMES = /connectionstring|apikey|accesskey|privatekey|passw|secret/;

/** Values that carry a secret whatever they are called: a URL with a password, a key inside a connection string. */
const SECRET_VALUE =
  /:\/\/[^/\s:@]*:[^/\s@]+@|(SharedAccessKey|AccountKey|SharedAccessSignature)=|^wh(sec|sk)_|-----BEGIN /i;

/** What stands behind the path of a URL: signatures and keys are handed over there, under any name. */
const QUERY = /^([a-z][a-z0-9+.-]*:\/\/[^?#\s]*)([?#])(\S+)$/i;

/**
 * A copy of a config document that may be printed. Hidden are secrets and tokens, sink options named like one, and every
 * value that came from the environment or a file by `${…}`; of a URL its query. Routes are shown as they are: they only name places, and a
 * route table without them explains nothing.
 * @param substituted keys as in LoadedConfig.
 */
export function redact(document: Mapping, substituted: ReadonlySet<string>): Mapping {
  const visit = (value: unknown, path: Path): unknown => {
    if (path[0] === 'routes' || value === null || value === undefined) return value;
    if (substituted.has(keyOf(path)) || isSecret(value, path)) return REDACTED;
    if (Array.isArray(value)) return value.map((item, index) => visit(item, [...path, index]));
    if (typeof value === 'string') return value.replace(QUERY, `$1$2${REDACTED}`);
    if (!isMapping(value)) return value;
    return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, visit(item, [...path, key])]));
  };
  return Object.fromEntries(Object.entries(document).map(([key, value]) => [key, visit(value, [key])]));
}

/** A message without the given secrets, for errors that quote what they were given. */
export function scrub(message: string, secrets: readonly string[]): string {
  return secrets.reduce(
    (text, secret) => (secret === '' ? text : text.replaceAll(secret, REDACTED)),
    message,
  );
}

/** Every text under a sink's or source's options that `redact` would hide. */
export function secretsOf(
  section: 'sinks' | 'sources',
  name: string,
  options: unknown,
  substituted: ReadonlySet<string>,
): string[] {
  const found: string[] = [];
  const visit = (value: unknown, path: Path, secret: boolean): void => {
    const hidden = secret || substituted.has(keyOf(path)) || isSecret(value, path);
    if (typeof value === 'string') found.push(...(hidden ? [value] : (QUERY.exec(value)?.slice(3) ?? [])));
    else if (Array.isArray(value)) value.forEach((item, index) => visit(item, [...path, index], hidden));
    else if (isMapping(value))
      Object.entries(value).forEach(([key, item]) => visit(item, [...path, key], hidden));
  };
  visit(options, [section, name], false);
  return found;
}

function isSecret(value: unknown, path: Path): boolean {
  if (typeof value === 'string' && SECRET_VALUE.test(value)) return true;
  if (path[0] === 'signing' && path[1] === 'secrets')
    return path.length === 3 ? !isMapping(value) : path[3] === 'secret';
  if (path[0] !== 'sinks' && path[0] !== 'sources') return scalarAt(path)?.schema.sensitive ?? false;
  const name = path.at(-1);
  return path.length > 2 && typeof name === 'string' && isSecretName(name);
}

function isSecretName(name: string): boolean {
  const words = name
    .replaceAll(/([a-z0-9])([A-Z])/g, '$1 $2')
    .toLowerCase()
    .split(/[^a-z0-9]+/);
  return words.some((word) => SECRET_WORD.test(word)) || SECRET_NAMES.test(words.join(''));
}
