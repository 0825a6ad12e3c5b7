import type { InvalidReason } from '../core/ingest.ts';

/** Why an authentic event is not fit to route; these codes are in quarantine, in answers and in metrics. */
export const INVALID = {
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

export function invalidReason(code: InvalidCode): InvalidReason & { readonly code: InvalidCode } {
  return { code, detail: INVALID[code] };
}
