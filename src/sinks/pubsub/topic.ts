const NAME = /^(?!goog)[A-Za-z][\w.~+%-]{2,254}$/;
const PATH = /^projects\/[^/]+\/topics\/([^/]+)$/;

/** Whether the service could have a topic of this name, or of this full path. */
export function isTopic(name: string): boolean {
  return NAME.test(PATH.exec(name)?.[1] ?? name);
}

/** The full path of a topic: `projects/acme/topics/events`. */
export function topicPath(project: string, name: string): string {
  return PATH.test(name) ? name : `projects/${project}/topics/${name}`;
}
