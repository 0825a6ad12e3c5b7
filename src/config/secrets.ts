import { readFileSync } from 'node:fs';
import { splitSecrets } from '../core/secrets.ts';
import { parseYaml } from './problem.ts';
import type { WrittenSecret } from './lists.ts';
import { isMapping } from './paths.ts';

/** A secret, and the teams whose events it may sign; null for all. */
export interface BoundSecret {
  readonly secret: string;
  readonly teams: readonly string[] | null;
}

/**
 * Every secret of the list. One value may hold several, with spaces or line breaks between, so that a file or a variable can
 * hold the new one and the old one of a rotation. Only where no secret can hold a space itself.
 */
export function eachSecret(signing: {
  readonly scheme: string;
  readonly secrets: readonly WrittenSecret[];
}): BoundSecret[] {
  const { scheme, secrets } = signing;
  return secrets.flatMap((written) => {
    const { secret, teams } = typeof written === 'string' ? { secret: written, teams: null } : written;
    const each = scheme === 'standard-webhooks' ? splitSecrets(secret) : [secret];
    return each.map((one) => ({ secret: one, teams }));
  });
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
  return Array.isArray(secrets)
    ? secrets.map((item: unknown) => placeOf(String(isMapping(item) ? item['secret'] : item)))
    : [];
}

function placeOf(secret: string): SecretPlace {
  const [, inside = ''] = /^\$\{([^}]+)\}$/.exec(secret) ?? [];
  if (inside.startsWith('file:')) return { kind: 'file', path: inside.slice('file:'.length) };
  return inside === '' ? { kind: 'config' } : { kind: 'variable', name: inside };
}
