import type { Route } from '../core/route.ts';
import { parsePath } from '../lib/json-paths.ts';
import { nearest } from '../lib/nearest.ts';
import { NAMES } from '../core/member-names.ts';

const INDEX = /^\d+$/;

/**
 * Of the paths that say what leaves, those that no documented event has: a slip in one lets everything out. A line each. That a
 * name is documented does not say that it stands there; `check --against` with real events does.
 */
export function unknownNames(routes: readonly Route[]): string[] {
  const lines = new Set<string>();
  for (const [index, { to }] of routes.entries())
    for (const { redactions = [] } of to)
      for (const { only = [], redact = [], remove = [], fields } of redactions)
        for (const path of [...only, ...redact, ...remove]) {
          const known = [...NAMES, ...Object.values(fields)];
          for (const step of parsePath(path)) {
            if (typeof step === 'string' || known.includes(step.name) || INDEX.test(step.name)) continue;
            const close = nearest(step.name, known);
            const advice = close === undefined ? 'check how it is written' : `did you mean "${close}"?`;
            lines.add(
              `routes[${index}]: "${path}": no documented event has a member "${step.name}"; ${advice}`,
            );
          }
        }
  return [...lines];
}
