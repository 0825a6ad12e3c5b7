import { nearest } from './nearest.ts';
import type { Environment } from './paths.ts';
import { SCALAR_KEYS } from './keys.ts';

const PREFIX = 'MILLRACE_';

/**
 * Warnings for variables that look like a misspelt setting (`MILLRACE_SERVER_PROT`). Not errors: container platforms
 * put variables of their own making beside ours.
 * @param mentioned variables the file itself refers to.
 */
export function straySettings(env: Environment, mentioned: ReadonlySet<string>): string[] {
  const known = SCALAR_KEYS.map((scalar) => scalar.env.slice(PREFIX.length));
  return Object.keys(env).flatMap((name) => {
    if (!name.startsWith(PREFIX) || name === 'MILLRACE_CONFIG') return [];
    if (known.includes(name.slice(PREFIX.length)) || mentioned.has(name)) return [];
    const close = nearest(name.slice(PREFIX.length), known);
    return close === undefined ? [] : [`${name} is not a known setting; did you mean ${PREFIX}${close}?`];
  });
}
