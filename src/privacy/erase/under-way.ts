import { type ErasureRequest, Owners } from '../../core/erasure.ts';
import { ErasedUsers } from './erased-users.ts';
import { Requests } from './requests.ts';

/** The erasures of a folder as who reads archives meanwhile has to know them: what is of these users is in some places, and gone from others. */
export class ErasuresUnderWay {
  readonly #requests: Requests;
  readonly #users: ErasedUsers;
  #before = '';

  /** @param folder the erasure folder @throws MillraceError erasure_unreadable */
  constructor(folder: string) {
    this.#requests = new Requests(folder);
    this.#users = ErasedUsers.open(folder);
  }

  /** Whose erasures have begun and are not done; null while there are none. */
  begun(): Owners | null {
    const begun = this.#listed();
    this.#before = namesOf(begun);
    this.#users.refresh();
    return begun.length === 0 ? null : new Owners(begun);
  }

  /** Whether one has begun or ended since `begun` was asked. */
  haveMoved(): boolean {
    // One that has begun and ended meanwhile has left a user on the list.
    return this.#users.refresh() || namesOf(this.#listed()) !== this.#before;
  }

  #listed(): readonly ErasureRequest[] {
    return this.#requests.list().filter(({ begun_at: at }) => at !== null);
  }
}

function namesOf(requests: readonly ErasureRequest[]): string {
  return requests.map(({ request }) => request).join();
}
