// cuBLAS over the fake GPU: matrix products by the BLAS of the host.
#pragma once

#include <cblas.h>

#include "cuda_runtime.h"

struct FakeBlas {
  cudaStream_t stream = nullptr;
};
using cublasHandle_t = FakeBlas*;
enum cublasStatus_t { CUBLAS_STATUS_SUCCESS };
inline constexpr CBLAS_TRANSPOSE CUBLAS_OP_N = CblasNoTrans, CUBLAS_OP_T = CblasTrans;

inline const char* cublasGetStatusString(cublasStatus_t) { return "fake trouble"; }
inline cublasStatus_t cublasCreate(cublasHandle_t* handle) {
  *handle = new FakeBlas;
  openblas_set_num_threads(1);
  return CUBLAS_STATUS_SUCCESS;
}
inline cublasStatus_t cublasDestroy(cublasHandle_t handle) {
  delete handle;
  return CUBLAS_STATUS_SUCCESS;
}
inline cublasStatus_t cublasSetStream(cublasHandle_t handle, cudaStream_t stream) {
  handle->stream = stream;
  return CUBLAS_STATUS_SUCCESS;
}
inline cublasStatus_t cublasSgemm(cublasHandle_t handle, CBLAS_TRANSPOSE op_a, CBLAS_TRANSPOSE op_b,
                                  int m, int n, int k, const float* alpha, const float* a, int lda,
                                  const float* b, int ldb, const float* beta, float* c, int ldc) {
  cuStreamSynchronize(handle->stream);
  cblas_sgemm(CblasColMajor, op_a, op_b, m, n, k, *alpha, a, lda, b, ldb, *beta, c, ldc);
  return CUBLAS_STATUS_SUCCESS;
}
inline cublasStatus_t cublasDgemm(cublasHandle_t handle, CBLAS_TRANSPOSE op_a, CBLAS_TRANSPOSE op_b,
                                  int m, int n, int k, const double* alpha, const double* a,
                                  int lda, const double* b, int ldb, const double* beta, double* c,
                                  int ldc) {
  cuStreamSynchronize(handle->stream);
  cblas_dgemm(CblasColMajor, op_a, op_b, m, n, k, *alpha, a, lda, b, ldb, *beta, c, ldc);
  return CUBLAS_STATUS_SUCCESS;
}
