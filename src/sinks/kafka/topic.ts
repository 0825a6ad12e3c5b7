/** Whether a cluster could have a topic of this name. */
export function isTopic(name: string): boolean {
  return /^[\w.-]{1,249}$/.test(name) && name !== '.' && name !== '..';
}
