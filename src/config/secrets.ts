import { readFileSync } from 'node:fs';
import { splitSecrets } from '../core/secrets.ts';
import { parseYaml } from './problem.ts';
import type { WrittenSecret } from './lists.ts';
import { isMapping } from './paths.ts';

/**
 * Every secret of the list. With standard-webhooks, whose secrets have no spaces, one value can hold several with spaces
 * or line breaks between: the new and the old one of a rotation.
 * @returns each with the teams whose events it may sign; null for all
 */
export function eachSecret(signing: { readonly scheme: string; readonly secrets: readonly WrittenSecret[] }) {
  const { scheme, secrets } = signing;
  return secrets.flatMap((written) => {
    const { secret, teams } = typeof written === 'string' ? { secret: written, teams: null } : written;
    const each = scheme === 'standard-webhooks' ? splitSecrets(secret) : [secret];
    return each.map((one) => ({ secret: one, teams }));
  });
}

/** The origin of a value of `signing.secrets`. */
export type SecretPlace =
  | { readonly kind: 'file'; readonly path: string }
  | { readonly kind: 'variable'; readonly name: string }
  /** In the config itself, or made of several parts. */
  | { readonly kind: 'config' };

/** The origins of the secrets, in order. @throws MillraceError config_invalid, or the system's error */
export function secretPlaces(file: string): SecretPlace[] {
  const { value } = parseYaml(readFileSync(file, 'utf8'), file);
  const signing = isMapping(value) ? value['signing'] : null;
  const secrets: unknown = isMapping(signing) ? signing['secrets'] : null;
  return Array.isArray(secrets)
    ? secrets.map((item: unknown) => placeOf(String(isMapping(item) ? item['secret'] : item)))
    : [];
}

function placeOf(secret: string): SecretPlace {
  const [, inside = ''] = /^\$\{([^}]+)\}$/.exec(secret) ?? [];
  if (inside.startsWith('file:')) return { kind: 'file', path: inside.slice('file:'.length) };
  return inside === '' ? { kind: 'config' } : { kind: 'variable', name: inside };
}
