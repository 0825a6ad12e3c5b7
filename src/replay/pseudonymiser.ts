import { createHmac } from 'node:crypto';
import type { Event } from '../core/event.ts';
import { isUuid, uuidOfHash } from '../lib/uuid.ts';
import { rewriteBody } from './rewrite-body.ts';
import { lowerUuid } from './selection.ts';

/** How events are made fit for another system than the one they were made in. */
export interface PseudonymiserOptions {
  /** Users by the id they are to have instead of theirs. */
  readonly users: ReadonlyMap<string, string>;
  /** With a key, every team, user and client user gets a pseudonym; the same key gives the same ones. */
  readonly key: Buffer | null;
  /** Names of the members that hold ids at the top level of a body; they mean the same further down. */
  readonly fields: { readonly team: string; readonly user: string; readonly clientUser: string };
}

type Kind = 'team' | 'user' | 'clientUser';

const ANY_UUID = /[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}/gi;

/**
 * Gives events other ids, in the envelope and wherever they stand in the body: as a string of their own or, where they
 * are UUIDs, inside a longer one; with a key also every other string in a member that is named like an id. The event id
 * stays. The signature headers go: they would not fit any longer.
 *
 * This hides who an event is about from somebody who knows ids. It hides nothing else that the body says.
 */
export class Pseudonymiser {
  readonly #options: PseudonymiserOptions;
  readonly #users: ReadonlyMap<string, string>;
  readonly #kinds: ReadonlyMap<string, Kind>;

  constructor(options: PseudonymiserOptions) {
    this.#options = options;
    this.#users = new Map(Array.from(options.users, ([from, to]) => [lowerUuid(from), to]));
    const { team, user, clientUser } = options.fields;
    this.#kinds = new Map<string, Kind>([
      [team, 'team'],
      [user, 'user'],
      [`${user}s`, 'user'],
      [clientUser, 'clientUser'],
    ]);
  }

  /** @throws JsonFault when the body is no JSON object, so that nobody can say what stands in it */
  apply(event: Event): Event {
    const own = this.#ownNames(event);
    const nameOf = (id: string): string | undefined => {
      const canonical = lowerUuid(id);
      return own.get(canonical) ?? this.#users.get(canonical);
    };
    const body = rewriteBody(event.body, (text, member) => {
      const name = nameOf(text);
      if (name !== undefined) return name;
      const kind = member === null ? undefined : this.#kinds.get(member);
      if (kind !== undefined && text !== '' && this.#options.key !== null) return this.#pseudonym(kind, text);
      return text.length > 36 ? text.replaceAll(ANY_UUID, (uuid) => nameOf(uuid) ?? uuid) : text;
    });
    const renamed = (id: string | null): string | null => (id === null ? null : (nameOf(id) ?? id));
    const envelope = {
      team: renamed(event.team),
      user: renamed(event.user),
      clientUser: renamed(event.clientUser),
    };
    const isSame = body === event.body && envelope.user === event.user;
    return isSame ? event : { ...event, ...envelope, headers: {}, body };
  }

  #ownNames({ team, user, clientUser }: Event): ReadonlyMap<string, string> {
    const names = new Map<string, string>();
    if (this.#options.key === null) return names;
    // The user last: where two ids are the same text, it is the user's that counts.
    for (const [kind, id] of [
      ['team', team],
      ['clientUser', clientUser],
      ['user', user],
    ] as const) {
      if (id === null || id === '') continue;
      const canonical = lowerUuid(id);
      names.set(canonical, this.#users.get(canonical) ?? this.#pseudonym(kind, id));
    }
    return names;
  }

  /** A UUID for a UUID (version 8), else a text: what checks ids in the other system still accepts them. */
  #pseudonym(kind: Kind, id: string): string {
    const canonical = lowerUuid(id);
    const mac = createHmac('sha256', this.#options.key ?? '')
      .update(`${kind}\0${canonical}`)
      .digest();
    return isUuid(id) ? uuidOfHash(mac) : `pseudonym-${mac.toString('hex', 0, 16)}`;
  }
}
