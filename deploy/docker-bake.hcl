# The image for amd64 and arm64, with an SBOM and provenance. From the top of the repository:
#   IMAGE=registry.example.com/millrace docker buildx bake --file deploy/docker-bake.hcl --push
# For this machine alone: docker build --file deploy/Dockerfile --tag millrace .
variable "IMAGE" {
  default = "millrace"
}

# As package.json and the chart.
variable "VERSION" {
  default = "0.1.0"
}

variable "REVISION" {
  default = ""
}

target "default" {
  context    = "."
  dockerfile = "deploy/Dockerfile"
  platforms  = ["linux/amd64", "linux/arm64"]
  tags       = ["${IMAGE}:${VERSION}"]
  attest     = ["type=sbom", "type=provenance,mode=max"]
  labels = {
    "org.opencontainers.image.title"    = "millrace"
    "org.opencontainers.image.version"  = VERSION
    "org.opencontainers.image.revision" = REVISION
    "org.opencontainers.image.licenses" = "Apache-2.0"
  }
}
