import { isMapping, keyOf, mapDocument, type Mapping, type Path, within } from './paths.ts';
import { scalarAt } from './keys.ts';

const REDACTED = '[redacted]';

/** Words in the names of secret options of sinks: `apiKey`, `client_secret`, `sasToken`. */
const SECRET_WORD =
  /^(auth|authorization|bearer|cookie|credentials?|keys?|passphrase|passwd|password|pwd|sas|secrets?|signature|tokens?)$/;

/** Parts of names of secrets, in lower case without dashes and underscores. */
const SECRET_NAMES = /connectionstring|apikey|accesskey|privatekey|passw|secret/;

/** Values with a secret in them: a URL with a password, a connection string with a key. */
const SECRET_VALUE =
  /:\/\/[^/\s:@]*:[^/\s@]+@|(SharedAccessKey|AccountKey|SharedAccessSignature)=|^wh(sec|sk)_|-----BEGIN /i;

/** The query of a URL, which can have signatures and keys under any name. */
const QUERY = /^([a-z][a-z0-9+.-]*:\/\/[^?#\s]*)([?#])(\S+)$/i;

/**
 * A copy of a config document that can be printed, without secrets, tokens, sink options with the name of a secret,
 * values that came from the environment or a file by `${…}`, and queries of URLs. Routes are shown: they have no secrets.
 * @param substituted keys as in LoadedConfig
 */
export function redact(document: Mapping, substituted: ReadonlySet<string>): Mapping {
  return mapDocument(document, (value, path) => {
    if (path[0] === 'routes' || value === null || value === undefined) return value;
    if (substituted.has(keyOf(path)) || isSecret(value, path)) return REDACTED;
    return typeof value === 'string' ? value.replace(QUERY, `$1$2${REDACTED}`) : value;
  }) as Mapping;
}

/** A message without the given secrets: errors can quote their input. */
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
  const secrets: Path[] = [];
  mapDocument(options, (value, inside) => {
    const path = [section, name, ...inside];
    if (substituted.has(keyOf(path)) || isSecret(value, path)) secrets.push(path);
    if (typeof value !== 'string') return value;
    const isHidden = secrets.some((outer) => within(path, outer));
    found.push(...(isHidden ? [value] : (QUERY.exec(value)?.slice(3) ?? [])));
    return value;
  });
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
