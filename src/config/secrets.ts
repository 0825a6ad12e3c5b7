import { readFileSync } from 'node:fs';
import { splitSecrets } from '../core/secrets.ts';
import { parseYaml } from './document.ts';
import { isMapping } from './paths.ts';

/**
 * Every secret of the list. One value may hold several, with spaces or line breaks between, so that a file or a variable can
 * hold the new one and the old one of a rotation. Only where no secret can hold a space itself.
 */
export function eachSecret(signing: {
  readonly scheme: string;
  readonly secrets: readonly string[];
}): string[] {
  const { scheme, secrets } = signing;
  return scheme === 'standard-webhooks' ? secrets.flatMap(splitSecrets) : [...secrets];
}

/** Where a value of `signing.secrets` comes from. */
export type SecretPlace =
  | { readonly kind: 'file'; readonly path: string }
  | { readonly kind: 'variable'; readonly name: string }
  /** Written in the config itself, or put together of several parts. */
  | { readonly kind: 'config' };

/**
 * Where the config has its secrets from, in the order of the list.
 * @throws MillraceError config_invalid, or the system's error
 */
export function secretPlaces(file: string): SecretPlace[] {
  const { value } = parseYaml(readFileSync(file, 'utf8'), file);
  const signing = isMapping(value) ? value['signing'] : null;
  const secrets: unknown = isMapping(signing) ? signing['secrets'] : null;
  return Array.isArray(secrets) ? secrets.map((secret) => placeOf(String(secret))) : [];
}

function placeOf(secret: string): SecretPlace {
  const [, inside = ''] = /^\$\{([^}]+)\}$/.exec(secret) ?? [];
  if (inside.startsWith('file:')) return { kind: 'file', path: inside.slice('file:'.length) };
  return inside === '' ? { kind: 'config' } : { kind: 'variable', name: inside };
}
